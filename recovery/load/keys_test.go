package load

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// manyKeys has n hashes with three fields each, and as many strings.
func manyKeys(n int) *recoverytest.Fake {
	s := &recoverytest.Fake{Counted: content.Control{Marks: content.Marks{NextSeq: 1 << 63, LowSeq: 1<<63 - 1, NextQueue: 1}}}
	var b content.Batch
	id := uint64(0)
	head := func(kind content.Kind, name string, value []byte) {
		id++
		b.PutHead(&content.Head{ID: id, Kind: kind, Name: []byte(name), Version: id, Value: value}, content.Mark{})
	}
	for i := range n {
		head(content.String, fmt.Sprint("string ", i), bytes.Repeat([]byte{'x'}, 50*i))
		head(content.Hash, fmt.Sprint("hash ", i), []byte{})
		hash := id
		for j := range 3 {
			id++
			b.PutField(&content.Field{Hash: hash, ID: id, Name: fmt.Append(nil, j), Version: id, Value: fmt.Append(nil, i, j)}, content.Mark{})
		}
	}
	s.Keys.Apply(&b)
	s.Counted.LastKey = id
	return s
}

func TestAQueueThatHasExpiredIsNotLoaded(t *testing.T) {
	text, _ := dumpOf(t, recoverytest.OneOfEach(), dump.Options{})
	text = bytes.Replace(text, []byte(`"queue":"jobs",`), []byte(fmt.Sprintf(`"queue":"jobs","expires":%d,`, recoverytest.Later)), 1)
	end := bytes.LastIndex(text, []byte(`,"hash":`))
	text = append(text[:end], "}\n"...)
	dir := t.TempDir()
	report := load(t, dir, text, Options{})
	if report.Expired != 6 || report.Packets != 2 || report.Queues != 5 {
		t.Errorf("report %+v", report)
	}
	if bytes.Contains(folderDump(t, dir, dump.Options{}), []byte("jobs")) {
		t.Error("the expired queue was stored")
	}
}

// Without its hash a large packet could be read, and not be found by its value.
func TestALargePacketWithoutAKeyIsLoadedWithItsHash(t *testing.T) {
	large := bytes.Repeat([]byte{'x'}, 5000)
	src := &recoverytest.Fake{
		Counted: content.Control{Marks: content.Marks{NextSeq: 1<<63 + 2, LowSeq: 1<<63 - 1, NextQueue: 2}},
		Defined: []content.Queue{{ID: 1, Name: []byte("list")}},
	}
	src.Put(1, 128, 1<<63, content.Packet{Payload: large})
	src.Put(1, 128, 1<<63+1, content.Packet{Payload: large, Key: []byte("key")})
	src.Count()
	text, _ := dumpOf(t, src, dump.Options{})
	dir := t.TempDir()
	load(t, dir, text, Options{})

	s, err := storage.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var got []uint64
	if err := s.Walk(storage.Visitor{Packet: func(_ content.PacketID, m *content.Meta, _ []byte, damage error) error {
		got = append(got, m.Hash)
		return damage
	}}); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{content.ValueHash(large), 0}; !slices.Equal(got, want) {
		t.Errorf("the hashes are %x, want %x", got, want)
	}
}
