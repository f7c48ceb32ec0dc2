package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// endless gives the same bytes again and again.
type endless struct {
	text, rest string
	given      int // bytes
}

func (e *endless) Read(b []byte) (int, error) {
	if e.rest == "" {
		e.rest = e.text
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	e.given += n
	return n, nil
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// mostInUse reads a dump without an end, and returns how much memory is in use when as much is read
// ahead as can be.
func mostInUse(t *testing.T, begin, records string) (most uint64) {
	synctest.Test(t, func(t *testing.T) {
		before := heapInUse()
		enough := errors.New("enough")
		_, err := Read(t.Context(), io.MultiReader(strings.NewReader(begin), &endless{text: records}), func(r *Record) error {
			if r.Type != TypeQueue {
				return nil
			}
			synctest.Wait() // all goroutines wait for a chunk to come back
			most = heapInUse() - before
			return enough
		}, nil)
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
	})
	return most
}

func TestSystemMemoryForDumpsOfStrangersIsBounded(t *testing.T) {
	header := "\x85\xa4type\xa8holdfast\xa7version\x01\xadnext_sequence\xcf\x80\x00\x00\x00\x00\x00\x00\x01" +
		"\xaclow_sequence\xcf\x7f\xff\xff\xff\xff\xff\xff\xff\xaanext_queue\x02" +
		"\x83\xa4type\xa5queue\xa2id\x01\xa5queue\xa1a"
	const length, mapLength = 7_500_000, 1_200_000
	long := packetLine(fmt.Sprintf(`%s,"payload":"%s"`, seq8, strings.Repeat("y", length)))
	escaped := packetLine(fmt.Sprintf(`%s,"payload":"%s"`, seq8, strings.Repeat(`y\n`, length/3)))
	short := strings.Repeat(packetLine(seq8), 10_000)
	longMap := "\x82\xa4type\xa6packet\xa7payload\xc6" + string(binary.BigEndian.AppendUint32(nil, mapLength)) + strings.Repeat("y", mapLength)
	longestMap := "\x82\xa4type\xa6packet\xa7payload\xc6" + string(binary.BigEndian.AppendUint32(nil, length)) + strings.Repeat("y", length)
	shortMaps := strings.Repeat("\x81\xa4type\xa6packet", 10_000)

	// Short records take their bytes, and what they become. Long ones take a buffer that append has
	// made larger than it need be, and their value.
	chunks := uint64(2*runtime.GOMAXPROCS(0) + 3)
	const recordBytes, longest = 1024, 5 * 10 << 20 // of which one is on its way
	ofShort := chunks * (2*chunkBytes + chunkRecords*recordBytes)
	for name, c := range map[string]struct {
		begin, records string
		limit          uint64
	}{
		"long and short lines": {head + first, long + short, ofShort + longest},
		"long lines":           {head + first, long, longest},
		"escaped lines":        {head + first, escaped + short, ofShort + longest},
		"short lines":          {head + first, short, ofShort},
		"long and short maps":  {header, longMap + shortMaps, ofShort + chunks*3*maxMap},
		"long maps":            {header, longMap, chunks * 4 * maxMap},
		"short maps":           {header, shortMaps, ofShort},
		"longest maps":         {header, longestMap, longest},
	} {
		used := mostInUse(t, c.begin, c.records)
		t.Logf("%s: %d of %d MiB were in use", name, used>>20, c.limit>>20)
		if used > c.limit {
			t.Errorf("%s: %d MiB were in use, more than %d", name, used>>20, c.limit>>20)
		}
	}
}
