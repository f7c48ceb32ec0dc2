package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

func TestAStoppedLoadOfKeysGoesOnWhereItWas(t *testing.T) {
	text, _ := dumpOf(t, manyKeys(40), dump.Options{})
	for name, merge := range map[string]bool{"new folder": false, "merge": true} {
		t.Run(name, func(t *testing.T) {
			folder := func() string {
				if merge {
					return recoverytest.InFolder(t, recoverytest.OneOfEach())
				}
				return t.TempDir()
			}
			want, dir := folder(), folder()
			made := load(t, want, text, Options{Merge: merge})
			if made.Keys != 80 || made.Taken != 0 {
				t.Errorf("report %+v", made)
			}
			stops := 0
			for at := len(text) / 9; ; at += len(text) / 9 {
				ctx, stop := context.WithCancel(t.Context())
				report, err := Load(ctx, dir, &stopper{bytes.NewReader(text), at, stop}, Options{Merge: merge, Now: recoverytest.Later, batchBytes: 1, chunkBytes: 512})
				stop()
				if err == nil {
					if report.Keys != 80 || report.Taken != 0 {
						t.Errorf("report %+v", report)
					}
					break
				}
				if stops++; !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
			if stops < 4 {
				t.Errorf("stopped %d times: too few to prove anything", stops)
			}
			if got, want := folderDump(t, dir, dump.Options{}), folderDump(t, want, dump.Options{}); !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
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

func TestAMergeOfPacketsUnderTheNameOfAStringIsRefusedBeforeAnythingIsStored(t *testing.T) {
	src := recoverytest.Many(20)
	src.Defined[3].Name = []byte("hash")
	text, _ := dumpOf(t, src, dump.Options{})
	dir := recoverytest.InFolder(t, recoverytest.OneOfEach())
	before := folderDump(t, dir, dump.Options{})
	_, err := Load(t.Context(), dir, bytes.NewReader(text), Options{Merge: true, Now: recoverytest.Later})
	if err == nil || !strings.Contains(err.Error(), `a string or hash called "hash"`) || !strings.Contains(err.Error(), "nothing was stored") {
		t.Errorf("got %v", err)
	}
	if !bytes.Equal(before, folderDump(t, dir, dump.Options{})) {
		t.Error("the folder has changed")
	}
	_, err = Load(t.Context(), dir, io.MultiReader(bytes.NewReader(text)), Options{Merge: true, Now: recoverytest.Later})
	if err == nil || !strings.Contains(err.Error(), `a string or hash called "hash"`) {
		t.Errorf("a dump that cannot be read twice: %v", err)
	}
}

func TestAFolderWithKeysIsNotEmptyAndOneWithDeadKeysIs(t *testing.T) {
	text, _ := dumpOf(t, manyKeys(1), dump.Options{})
	_, err := Load(t.Context(), recoverytest.InFolder(t, manyKeys(3)), bytes.NewReader(text), Options{Now: recoverytest.Later})
	if !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "6 strings and hashes") {
		t.Errorf("got %v", err)
	}
	dir := recoverytest.InFolder(t, manyKeys(3))
	recoverytest.Tamper(t, dir, func(b *storage.Batch) {
		b.PutQueue(storage.Queue{ID: 1, Name: []byte("string 0")})
		b.Put(storage.PacketID{Queue: 1, Priority: 1, Seq: 1<<63 + 9}, &storage.Packet{})
		b.SetFlush(storage.Flush{{Keys: 100, Queues: 2}})
		b.SetMarks(storage.Marks{NextSeq: 1<<63 + 10, LowSeq: 1<<63 - 1, NextQueue: 2, LastKey: 100})
	})
	if report := load(t, dir, text, Options{}); report.Keys != 2 {
		t.Errorf("report %+v", report)
	}
	if got := folderDump(t, dir, dump.Options{}); !bytes.Equal(got, text) {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
	s, err := storage.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if c := s.Control(); c.Keys != 5 || c.LastKey <= 100 || s.Flush() != (storage.Flush{}) {
		t.Errorf("control record %+v, flush record %+v: want numbers above those that were given out", c, s.Flush())
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
