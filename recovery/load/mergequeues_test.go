package load

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
)

func TestMergeThatNeedsMoreNumbersThanThereAreIsRefusedBeforeAnythingIsStored(t *testing.T) {
	src := &recoverytest.Fake{Counted: storage.Control{Marks: storage.Marks{NextSeq: 1<<63 + 10, LowSeq: 1<<63 - 1, NextQueue: lastQueueMark - 3}}}
	src.Defined = []storage.Queue{{ID: 1, Name: []byte("queue 2")}}
	src.Put(1, 1, 1<<63, storage.Packet{})
	dir := recoverytest.InFolder(t, src)
	before := folderDump(t, dir, dump.Options{})
	text, _ := dumpOf(t, recoverytest.Many(60), dump.Options{}) // six queues that the folder has not
	_, err := Load(t.Context(), dir, bytes.NewReader(text), Options{Merge: true, Now: recoverytest.Later})
	if err == nil || !strings.Contains(err.Error(), "numbers for 3 more queues") || !strings.Contains(err.Error(), "nothing was stored") {
		t.Errorf("got %v, want that there are too few numbers", err)
	}
	if after := folderDump(t, dir, dump.Options{}); !bytes.Equal(before, after) {
		t.Error("the folder has changed")
	}
}

func TestMergeToMoreQueuesThanAServerHoldsIsRefused(t *testing.T) {
	many := newMergeQueues(1)
	for i := range storage.MaxQueues {
		if _, fresh, err := many.number(0, fmt.Append(nil, i)); !fresh || err != nil {
			t.Fatalf("queue %d: %v %v", i, fresh, err)
		}
	}
	if id, fresh, err := many.number(0, []byte("7")); id != 8 || fresh || err != nil {
		t.Errorf("a queue that is there: %d %v %v", id, fresh, err)
	}
	if _, _, err := many.number(0, []byte("one more")); err == nil || !strings.Contains(err.Error(), "folder of its own") {
		t.Errorf("one more: %v", err)
	}
	long := newMergeQueues(1)
	long.bytes = storage.MaxNameBytes - 3
	if err := long.checkRoom(1, 4); err == nil {
		t.Error("names of more bytes than a server holds have room")
	}
	if _, _, err := long.number(0, []byte("abc")); err != nil {
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
		l.names.add(q.Database, q.Name, q.ID)
	}
	l.names.bytes = storage.MaxNameBytes
	if err := l.readHeader(); err != nil {
		t.Fatal(err)
	}
	if err := l.validate(t.Context()); err != nil {
		t.Error(err)
	}
}
