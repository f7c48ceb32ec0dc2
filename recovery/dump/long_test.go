package dump

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

func TestLongRecordsAmongShortOnesAreLoadedHoweverTheyAreWritten(t *testing.T) {
	const long = 1_000_000
	sizes := map[string][]int{
		"three long ones":         {long, long, long},
		"long one, short ones":    append([]int{long}, make([]int, 20_000)...),
		"short, long, short":      append(append(make([]int, 3000), long), make([]int, 3000)...),
		"just fits and just not":  {300_000, 300_000, 390_000, 400_000, 600_000, 640_000, 20},
		"large payloads":          bytesOf(2000, 1100),
		"long and large in turns": append(bytesOf(300, 1100), append([]int{long}, bytesOf(300, 1100)...)...),
	}
	for name, sizes := range sizes {
		src := manyPackets(len(sizes))
		for i, n := range sizes {
			if n > 0 {
				src.packets[i].packet.Payload = bytes.Repeat([]byte{1}, n) // six bytes when escaped
			}
		}
		for _, o := range []Options{{Payload: Text}, {Payload: Base64}, {Format: Msgpack}} {
			dump, _ := dumpOf(t, src, o)
			dir := t.TempDir()
			load(t, dir, dump, LoadOptions{})
			if got := folderDump(t, dir, o); !bytes.Equal(got, dump) {
				t.Errorf("%s, %v %v: %d bytes are dumped of %d", name, o.Format, o.Payload, len(got), len(dump))
			}
		}
	}
}

func bytesOf(n, size int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = size
	}
	return s
}

func TestLongKeysAndPayloadsTogetherAreLoaded(t *testing.T) {
	src := manyPackets(60)
	for i := range src.packets {
		if i%3 > 0 {
			src.packets[i].packet.Key = bytes.Repeat([]byte{'k', byte(i)}, 30_000)
			src.packets[i].packet.Payload = bytes.Repeat([]byte{byte(i)}, 65_535)
		}
	}
	for _, o := range []Options{{}, {Format: Msgpack}} {
		dump, _ := dumpOf(t, src, o)
		for name, merge := range map[string]bool{"new folder": false, "merge": true} {
			dir := t.TempDir()
			load(t, dir, dump, LoadOptions{Merge: merge})
			if got := folderDump(t, dir, o); !merge && !bytes.Equal(got, dump) {
				t.Errorf("%v: %d bytes are dumped of %d", o.Format, len(got), len(dump))
			}
			if n := packetsIn(t, dir); n != 60 {
				t.Errorf("%v, %s: %d packets", o.Format, name, n)
			}
		}
	}
}

// endless gives the same bytes again and again.
type endless struct{ text, rest string }

func (e *endless) Read(b []byte) (int, error) {
	if e.rest == "" {
		e.rest = e.text
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// mostInUse reads some of a dump without an end and returns the most memory that was in use when as
// much was read ahead as can be.
func mostInUse(t *testing.T, header, records string) (most uint64) {
	synctest.Test(t, func(t *testing.T) {
		before := heapInUse()
		in, err := openInput(io.MultiReader(strings.NewReader(header), &endless{text: records}))
		if err != nil {
			t.Fatal(err)
		}
		in.start(chunkBytes, 0)
		defer in.close()
		for range 60 {
			synctest.Wait() // all goroutines of the input wait for a chunk to come back
			most = max(most, heapInUse()-before)
			c, err := in.next(t.Context())
			if err != nil || c.err != nil {
				t.Fatal(err, c.err)
			}
			in.release(c)
		}
	})
	return most
}

func TestMemoryForDumpsOfStrangersIsBounded(t *testing.T) {
	header := strings.Replace(head, `"version":1`, `"version":2`, 1)
	packed := "\x85\xa4type\xa8holdfast\xa7version\x02\xadnext_sequence\xcf\x80\x00\x00\x00\x00\x00\x00\x01" +
		"\xaclow_sequence\xcf\x80\x00\x00\x00\x00\x00\x00\x00\xaanext_queue\x02"
	const length = 7_500_000
	long := fmt.Sprintf(`{"type":"x","y":"%s"}`, strings.Repeat("y", length)) + "\n"
	escaped := fmt.Sprintf(`{"type":"x","y":"%s"}`, strings.Repeat(`y\n`, length/3)) + "\n"
	short := strings.Repeat(`{"type":"x"}`+"\n", 100_000)
	longPack := "\x82\xa4type\xa1x\xa1y\xc6" + string(binary.BigEndian.AppendUint32(nil, length)) + strings.Repeat("y", length)
	shortPack := strings.Repeat("\x81\xa4type\xa1x", 100_000)

	// For the shortest records there are, what they take when they are taken apart. For long ones
	// the buffers, their text without escapes, for which append takes a quarter more, and what was
	// read behind a long one.
	chunks := uint64(2*runtime.GOMAXPROCS(0) + 3)
	const recordBytes = 512
	ofShort := chunks * (chunkBytes + chunkRecords*recordBytes)
	ofLong := ofShort + longBytes + longBytes*5/4 + maxEntry
	for name, c := range map[string]struct {
		header, records string
		limit           uint64
	}{
		"long and short lines": {header, long + short, ofLong},
		"long lines":           {header, long, ofLong},
		"escaped lines":        {header, escaped + short, ofLong},
		"short lines":          {header, short, ofShort},
		"long and short maps":  {packed, longPack + shortPack, ofLong},
		"long maps":            {packed, longPack, ofLong},
		"short maps":           {packed, shortPack, ofShort},
	} {
		used := mostInUse(t, c.header, c.records)
		t.Logf("%s: at most %d of %d MiB were in use", name, used>>20, c.limit>>20)
		if used > c.limit {
			t.Errorf("%s: %d MiB were in use, more than %d", name, used>>20, c.limit>>20)
		}
	}
}

func TestLoadGoesOnBehindManyShortRecords(t *testing.T) {
	dump, _ := dumpOf(t, manyPackets(60), Options{})
	want := t.TempDir()
	load(t, want, dump, LoadOptions{})
	lines := bytes.SplitAfter(bytes.Replace(dump, []byte(`"version":1`), []byte(`"version":2`), 1), []byte{'\n'})
	lines = lines[:len(lines)-2]
	short := strings.Repeat(`{"type":"x"}`+"\n", 3*chunkRecords)
	var b strings.Builder
	for i, line := range lines {
		if b.Write(line); i == 30 {
			b.WriteString(short)
		}
	}
	at := b.Len() - 500 // within the last packets
	long := []byte(b.String() + endLine(60, 7))
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err := Load(ctx, dir, &stopper{bytes.NewReader(long), at, stop}, LoadOptions{Now: later, tune: smallSteps()})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "go on where it stopped") {
		t.Fatal(err)
	}
	report := load(t, dir, long, LoadOptions{tune: loadTuning{chunk: chunkBytes}})
	if report.Resumed < 30 || report.Packets != 60 || report.Ignored != 3*chunkRecords {
		t.Errorf("report %+v", report)
	}
	if got, want := folderDump(t, dir, Options{}), folderDump(t, want, Options{}); !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
