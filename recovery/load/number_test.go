package load

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestQueueWithTheLastNumberIsLoaded(t *testing.T) {
	const lastQueueMark = math.MaxUint32 // above every number that a queue can have
	src := &recoverytest.Fake{Counted: content.Control{Marks: content.Marks{NextSeq: 1<<63 + 10, LowSeq: 1<<63 - 1, NextQueue: lastQueueMark}}}
	src.Defined = []content.Queue{{ID: lastQueueMark - 1, Name: []byte("last")}}
	src.Put(lastQueueMark-1, 1, 1<<63, content.Packet{Payload: []byte("x")})
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
