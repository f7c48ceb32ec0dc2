package load

import (
	"bytes"
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
	if err == nil || !strings.Contains(err.Error(), "no number for the queue") || !strings.Contains(err.Error(), "nothing was stored") {
		t.Errorf("got %v, want that there are too few numbers", err)
	}
	if after := folderDump(t, dir, dump.Options{}); !bytes.Equal(before, after) {
		t.Error("the folder has changed")
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

func TestWindowsOfAMergeGetNumbersOfTheirOwn(t *testing.T) {
	text, _ := dumpOf(t, recoverytest.OneOfEach(), dump.Options{})
	dir := t.TempDir()
	load(t, dir, text, Options{})
	load(t, dir, text, Options{Merge: true})
	if got := bytes.Count(folderDump(t, dir, dump.Options{}), []byte(`"type":"window"`)); got != 4 {
		t.Errorf("%d windows, want those of both", got)
	}
	if report := verified(t, dir); !report.Sound() {
		t.Error(report.Findings)
	}
}
