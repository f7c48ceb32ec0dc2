package dump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/storage"
)

// numbersUsed is a folder with the queues 1 and 3, and left numbers for new ones until their end. A
// packet says that it is of queue 2, which is not defined.
func numbersUsed(t *testing.T, left uint32) (dir string) {
	t.Helper()
	src := &dumpFake{control: storage.Control{Marks: storage.Marks{NextSeq: 1<<63 + 10, LowSeq: 1<<63 - 1, NextQueue: lastQueueMark - left}}}
	for _, id := range []uint32{1, 3} {
		src.queues = append(src.queues, storage.Queue{ID: id, Name: fmt.Append(nil, "old ", id)})
		src.put(id, 1, 1<<63, storage.Packet{Payload: fmt.Append(nil, "of ", id)})
	}
	dir = inFolder(t, src)
	tamper(t, dir, func(b *storage.Batch) {
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
	src := manyPackets(60)
	dump, _ := dumpOf(t, src, Options{})
	want := inFolder(t, src)
	for _, left := range []uint32{queues, 3, 0} {
		for _, how := range []string{"file", "pipe", "stopped"} {
			name := fmt.Sprint(how, ", ", left, " numbers left")
			dir := numbersUsed(t, left)
			if how == "stopped" {
				ctx, stop := context.WithCancel(t.Context())
				_, err := Load(ctx, dir, &stopper{bytes.NewReader(dump), len(dump) / 2, stop}, LoadOptions{Merge: true, Now: later, tune: smallSteps()})
				if stop(); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "go on where it stopped") {
					t.Fatal(name, err)
				}
			}
			var in io.Reader = bytes.NewReader(dump)
			if how != "file" {
				in = io.MultiReader(in)
			}
			if _, err := Load(t.Context(), dir, in, LoadOptions{Merge: true, Now: later, tune: smallSteps()}); err != nil {
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
			tamper(t, dir, func(b *storage.Batch) { // a dump is of defined queues
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
	if err := long.room(1, 4); err == nil {
		t.Error("names of more bytes than a server holds have room")
	}
	if _, _, err := long.number([]byte("abc"), none); err != nil {
		t.Errorf("names of as many bytes as a server holds: %v", err)
	}
	if err := many.room(0, 0); err != nil {
		t.Errorf("as many queues as a server holds: %v", err)
	}
}

func TestQueueWithTheLastNumberIsLoaded(t *testing.T) {
	src := &dumpFake{control: storage.Control{Marks: storage.Marks{NextSeq: 1<<63 + 10, LowSeq: 1<<63 - 1, NextQueue: lastQueueMark}}}
	src.queues = []storage.Queue{{ID: lastQueueMark - 1, Name: []byte("last")}}
	src.put(lastQueueMark-1, 1, 1<<63, storage.Packet{Payload: []byte("x")})
	dump, _ := dumpOf(t, src, Options{})
	dir := t.TempDir()
	load(t, dir, dump, LoadOptions{})
	if got := folderDump(t, dir, Options{}); !bytes.Equal(got, dump) {
		t.Errorf("got\n%s\nwant\n%s", got, dump)
	}
	past := bytes.Replace(dump, []byte(`"id":4294967294`), []byte(`"id":4294967295`), 1)
	if _, err := Load(t.Context(), t.TempDir(), bytes.NewReader(past), LoadOptions{Now: later}); err == nil ||
		!strings.Contains(err.Error(), "expected 1 to 4294967294") {
		t.Errorf("a queue past the last number: %v", err)
	}
}

func TestQueuesThatDoNotFitAreSeenBeforeAnythingIsMerged(t *testing.T) {
	dump, _ := dumpOf(t, manyPackets(20), Options{})
	l := &loader{r: bytes.NewReader(dump), names: newMergeQueues(1)}
	l.names.bytes = storage.MaxNameBytes - 20
	if err := l.begun(l.r); err != nil {
		t.Fatal(err)
	}
	if err := l.rehearse(t.Context()); err == nil || !strings.Contains(err.Error(), "folder of its own") {
		t.Errorf("got %v, want that the queues do not fit", err)
	}
}

func TestQueuesThatAreThereNeedNoRoomInAMerge(t *testing.T) {
	src := manyPackets(20)
	dump, _ := dumpOf(t, src, Options{})
	r := bytes.NewReader(dump)
	l := &loader{r: r, seeker: r, names: newMergeQueues(1)}
	for _, q := range src.queues {
		l.names.add(q.Name, q.ID)
	}
	l.names.bytes = storage.MaxNameBytes
	if err := l.begun(l.r); err != nil {
		t.Fatal(err)
	}
	if err := l.rehearse(t.Context()); err != nil {
		t.Error(err)
	}
}
