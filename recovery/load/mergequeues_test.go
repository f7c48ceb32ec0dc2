package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
)

// numbersUsed is a folder with the queues 1 and 3, and left numbers for new ones until their end. A
// packet says that it is of queue 2, which is not defined.
func numbersUsed(t *testing.T, left uint32) (dir string) {
	t.Helper()
	src := &recoverytest.Fake{Counted: storage.Control{Marks: storage.Marks{NextSeq: 1<<63 + 10, LowSeq: 1<<63 - 1, NextQueue: lastQueueMark - left}}}
	for _, id := range []uint32{1, 3} {
		src.Defined = append(src.Defined, storage.Queue{ID: id, Name: fmt.Append(nil, "old ", id)})
		src.Put(id, 1, 1<<63, storage.Packet{Payload: fmt.Append(nil, "of ", id)})
	}
	dir = recoverytest.InFolder(t, src)
	recoverytest.Tamper(t, dir, func(b *storage.Batch) {
		b.Put(storage.PacketID{Queue: 2, Priority: 1, Seq: 1<<63 + 5}, &storage.Packet{Payload: []byte("of 2")})
	})
	return dir
}

// queuesIn are the numbers of the queues of a closed folder, by their names, and its marks.
func queuesIn(t *testing.T, dir string) (numbers map[string]uint32, m storage.Marks) {
	t.Helper()
	s, err := storage.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	numbers = make(map[string]uint32)
	err = s.Queues(func(q storage.Queue) error { numbers[string(q.Name)] = q.ID; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return numbers, s.Control().Marks
}

func TestMergeGivesFreeNumbersWhenTheNextOnesHaveComeToTheirEnd(t *testing.T) {
	const queues = 7
	src := recoverytest.Many(60)
	text, _ := dumpOf(t, src, dump.Options{})
	want := recoverytest.InFolder(t, src)
	for _, left := range []uint32{queues, 3, 0} {
		for _, how := range []string{"file", "pipe", "stopped"} {
			name := fmt.Sprint(how, ", ", left, " numbers left")
			dir := numbersUsed(t, left)
			if how == "stopped" {
				ctx, stop := context.WithCancel(t.Context())
				_, err := Load(ctx, dir, &stopper{bytes.NewReader(text), len(text) / 2, stop}, Options{Merge: true, Now: recoverytest.Later, batchBytes: 1, chunkBytes: 512})
				if stop(); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "a part of the dump is stored") {
					t.Fatal(name, err)
				}
			}
			var in io.Reader = bytes.NewReader(text)
			if how != "file" {
				in = io.MultiReader(in)
			}
			if _, err := Load(t.Context(), dir, in, Options{Merge: true, Now: recoverytest.Later, batchBytes: 1, chunkBytes: 512}); err != nil {
				t.Fatal(name, err)
			}
			numbers, marks := queuesIn(t, dir)
			if len(numbers) != queues+2 || numbers["old 1"] != 1 || numbers["old 3"] != 3 || marks.NextQueue != lastQueueMark {
				t.Errorf("%s: queues %v, marks %+v", name, numbers, marks)
			}
			seen := make(map[uint32]bool)
			for queue, id := range numbers {
				if seen[id] || id == 2 || id == 0 || id >= lastQueueMark {
					t.Errorf("%s: queue %q has the number %d", name, queue, id)
				}
				seen[id] = true
			}
			recoverytest.Tamper(t, dir, func(b *storage.Batch) { // a dump is of defined queues
				b.Delete(storage.PacketID{Queue: 2, Priority: 1, Seq: 1<<63 + 5}, storage.Removed{})
			})
			got, all := lists(t, dir), lists(t, want)
			all["old 1"], all["old 3"] = []string{"1 of 1 0"}, []string{"1 of 3 0"}
			if fmt.Sprint(got) != fmt.Sprint(all) {
				t.Errorf("%s: got %v\nwant %v", name, got, all)
			}
		}
	}
}

func TestMergeToMoreQueuesThanAServerHoldsIsRefused(t *testing.T) {
	none := func(func(storage.PacketID, *storage.Meta) error) error { return nil }
	many := newMergeQueues(1)
	for i := range storage.MaxQueues {
		if _, fresh, err := many.number(fmt.Append(nil, i), none); !fresh || err != nil {
			t.Fatalf("queue %d: %v %v", i, fresh, err)
		}
	}
	if id, fresh, err := many.number([]byte("7"), none); id != 8 || fresh || err != nil {
		t.Errorf("a queue that is there: %d %v %v", id, fresh, err)
	}
	if _, _, err := many.number([]byte("one more"), none); err == nil || !strings.Contains(err.Error(), "folder of its own") {
		t.Errorf("one more: %v", err)
	}
	long := newMergeQueues(1)
	long.bytes = storage.MaxNameBytes - 3
	if err := long.checkRoom(1, 4); err == nil {
		t.Error("names of more bytes than a server holds have room")
	}
	if _, _, err := long.number([]byte("abc"), none); err != nil {
		t.Errorf("names of as many bytes as a server holds: %v", err)
	}
	if err := many.checkRoom(0, 0); err != nil {
		t.Errorf("as many queues as a server holds: %v", err)
	}
}

func TestQueueWithTheLastNumberIsLoaded(t *testing.T) {
	src := &recoverytest.Fake{Counted: storage.Control{Marks: storage.Marks{NextSeq: 1<<63 + 10, LowSeq: 1<<63 - 1, NextQueue: lastQueueMark}}}
	src.Defined = []storage.Queue{{ID: lastQueueMark - 1, Name: []byte("last")}}
	src.Put(lastQueueMark-1, 1, 1<<63, storage.Packet{Payload: []byte("x")})
	text, _ := dumpOf(t, src, dump.Options{})
	dir := t.TempDir()
	load(t, dir, text, Options{})
	if got := folderDump(t, dir, dump.Options{}); !bytes.Equal(got, text) {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
	past := bytes.Replace(text, []byte(`"id":4294967294`), []byte(`"id":4294967295`), 1)
	if _, err := Load(t.Context(), t.TempDir(), bytes.NewReader(past), Options{Now: recoverytest.Later}); err == nil ||
		!strings.Contains(err.Error(), "expected 1 to 4294967294") {
		t.Errorf("a queue past the last number: %v", err)
	}
}

func TestQueuesThatDoNotFitAreSeenBeforeAnythingIsMerged(t *testing.T) {
	text, _ := dumpOf(t, recoverytest.Many(20), dump.Options{})
	l := &loader{source: bytes.NewReader(text), names: newMergeQueues(1)}
	l.names.bytes = storage.MaxNameBytes - 20
	if err := l.readHeader(); err != nil {
		t.Fatal(err)
	}
	if err := l.validate(t.Context()); err == nil || !strings.Contains(err.Error(), "folder of its own") {
		t.Errorf("got %v, want that the queues do not fit", err)
	}
}

func TestQueuesThatAreThereNeedNoRoomInAMerge(t *testing.T) {
	src := recoverytest.Many(20)
	text, _ := dumpOf(t, src, dump.Options{})
	r := bytes.NewReader(text)
	l := &loader{source: r, names: newMergeQueues(1)}
	for _, q := range src.Defined {
		l.names.add(q.Name, q.ID)
	}
	l.names.bytes = storage.MaxNameBytes
	if err := l.readHeader(); err != nil {
		t.Fatal(err)
	}
	if err := l.validate(t.Context()); err != nil {
		t.Error(err)
	}
}
