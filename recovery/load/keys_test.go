package load

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
)

// manyKeys has n hashes with three fields each, and as many strings.
func manyKeys(n int) *recoverytest.Fake {
	s := &recoverytest.Fake{Counted: storage.Control{Marks: storage.Marks{NextSeq: 1 << 63, LowSeq: 1<<63 - 1, NextQueue: 1}}}
	var b storage.Batch
	id := uint64(0)
	head := func(kind storage.Kind, name string, value []byte) {
		id++
		b.PutHead(&storage.Head{ID: id, Kind: kind, Name: []byte(name), Version: id, Value: value}, storage.Mark{})
	}
	for i := range n {
		head(storage.String, fmt.Sprint("string ", i), bytes.Repeat([]byte{'x'}, 50*i))
		head(storage.Hash, fmt.Sprint("hash ", i), []byte{})
		hash := id
		for j := range 3 {
			id++
			b.PutField(&storage.Field{Hash: hash, ID: id, Name: fmt.Append(nil, j), Version: id, Value: fmt.Append(nil, i, j)}, storage.Mark{})
		}
	}
	s.Keys.Apply(&b)
	s.Counted.LastKey = id
	return s
}

// keysIn lists the strings, hashes and fields of a folder that can be reached.
func keysIn(t *testing.T, dir string) (all []string) {
	t.Helper()
	for _, line := range bytes.Split(folderDump(t, dir, dump.Options{}), []byte{'\n'}) {
		if bytes.Contains(line, []byte(`"name`)) {
			all = append(all, string(line))
		}
	}
	return all
}

func TestAMergeLeavesKeysOutWhoseNamesTheFolderHas(t *testing.T) {
	src := manyKeys(2)
	var b storage.Batch
	b.PutHead(&storage.Head{ID: 90, Kind: storage.String, Name: []byte("jobs"), Version: 90, Value: []byte{}}, storage.Mark{})       // a list with packets
	b.PutHead(&storage.Head{ID: 91, Kind: storage.Hash, Name: []byte("hash"), Version: 91}, storage.Mark{})                          // a hash
	b.PutField(&storage.Field{Hash: 91, ID: 92, Name: []byte("new"), Version: 92, Value: []byte{}}, storage.Mark{})                  // and its field
	b.PutHead(&storage.Head{ID: 93, Kind: storage.String, Name: []byte("expired"), Version: 93, Value: []byte("x")}, storage.Mark{}) // one that is gone
	b.PutHead(&storage.Head{ID: 94, Kind: storage.String, Name: []byte("empty \"\n"), Version: 94, Value: []byte{}}, storage.Mark{}) // a queue without packets
	b.PutHead(&storage.Head{ID: 95, Database: 7, Kind: storage.Hash, Name: []byte("hash"), Version: 95}, storage.Mark{})             // of another database
	b.PutField(&storage.Field{Hash: 95, ID: 96, Name: []byte("new"), Version: 96, Value: []byte{}}, storage.Mark{})
	src.Keys.Apply(&b)
	text, _ := dumpOf(t, src, dump.Options{})
	dir := recoverytest.InFolder(t, recoverytest.OneOfEach())
	before := keysIn(t, dir)
	report := load(t, dir, text, Options{Merge: true})
	if report.Keys != 7 || report.Taken != 2 {
		t.Errorf("report %+v, want 7 stored and 2 left out", report)
	}
	want := append(before,
		`{"type":"string","name":"string 0"}`,
		`{"type":"hash","name":"hash 0"}`,
		`{"type":"field","hash":"hash 0","name":"0","value":"0 0"}`,
		`{"type":"field","hash":"hash 0","name":"1","value":"0 1"}`,
		`{"type":"field","hash":"hash 0","name":"2","value":"0 2"}`,
		`{"type":"string","name":"string 1","value":"`+strings.Repeat("x", 50)+`"}`,
		`{"type":"hash","name":"hash 1"}`,
		`{"type":"field","hash":"hash 1","name":"0","value":"1 0"}`,
		`{"type":"field","hash":"hash 1","name":"1","value":"1 1"}`,
		`{"type":"field","hash":"hash 1","name":"2","value":"1 2"}`,
		`{"type":"string","name":"expired","value":"x"}`,
		`{"type":"string","name":"empty \"\n"}`,
		`{"type":"hash","database":7,"name":"hash"}`,
		`{"type":"field","hash":"hash","name":"new"}`)
	if got := keysIn(t, dir); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
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
		Counted: storage.Control{Marks: storage.Marks{NextSeq: 1<<63 + 2, LowSeq: 1<<63 - 1, NextQueue: 2}},
		Defined: []storage.Queue{{ID: 1, Name: []byte("list")}},
	}
	src.Put(1, 128, 1<<63, storage.Packet{Payload: large})
	src.Put(1, 128, 1<<63+1, storage.Packet{Payload: large, Key: []byte("key")})
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
	if err := s.Packets(func(_ storage.PacketID, m *storage.Meta) error { got = append(got, m.Hash); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{storage.ValueHash(large), 0}; !slices.Equal(got, want) {
		t.Errorf("the hashes are %x, want %x", got, want)
	}
}
