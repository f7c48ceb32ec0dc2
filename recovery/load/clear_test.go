package load

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
)

func packetsIn(t *testing.T, dir string) int {
	t.Helper()
	return bytes.Count(folderDump(t, dir, dump.Options{}), []byte(`"type":"packet"`))
}

// withRubbish is a folder of n expired packets and n queues.
func withRubbish(t *testing.T, n int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := storage.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b storage.Batch
	for i := range n {
		if i%1000 == 0 {
			if err := s.Apply(&b); err != nil {
				t.Fatal(err)
			}
			b.Reset()
		}
		b.PutQueue(storage.Queue{ID: uint32(i + 1), Name: []byte{byte(i), byte(i >> 8), 'x'}})
		b.Put(storage.PacketID{Queue: uint32(i + 1), Priority: 1, Seq: 1<<63 + uint64(i)}, &storage.Packet{Expiry: recoverytest.Later - 1})
	}
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	return dir
}

// after is a context that ends once it was asked so often.
type after struct {
	context.Context
	calls int
}

func (a *after) Err() error {
	if a.calls--; a.calls < 0 {
		return context.Canceled
	}
	return nil
}

func TestStoppedClearingHasStoredNothing(t *testing.T) {
	const packets = 6000 // one look at the context in each scan, and more than one batch
	text, _ := dumpOf(t, recoverytest.OneOfEach(), dump.Options{})
	for calls := range 2 {
		dir := withRubbish(t, packets)
		_, err := Load(&after{t.Context(), calls}, dir, bytes.NewReader(text), Options{Now: recoverytest.Later})
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing was stored") {
			t.Errorf("stopped after %d looks: got %v, want that nothing was stored", calls, err)
		}
		load(t, dir, text, Options{})
		if got := folderDump(t, dir, dump.Options{}); !bytes.Equal(got, text) {
			t.Errorf("stopped after %d looks: got\n%s\nwant\n%s", calls, got, text)
		}
	}
}

func TestMergeThatHasStoredNothingSaysSo(t *testing.T) {
	text, _ := dumpOf(t, recoverytest.Many(1), dump.Options{})
	dir := t.TempDir()
	load(t, dir, text, Options{})
	long := strings.Repeat(`\u0001`, 300_000) // as it is written more than a batch takes, as it is stored less
	cut := bytes.Replace(text, []byte(`"payload":"`), []byte(`"payload":"`+long), 1)
	cut = cut[:bytes.LastIndex(cut, []byte(`{"type":"end"`))]
	_, err := Load(t.Context(), dir, io.MultiReader(bytes.NewReader(cut)), Options{Merge: true, Now: recoverytest.Later})
	if err == nil || !strings.Contains(err.Error(), "cut short") || !strings.Contains(err.Error(), "nothing was stored") {
		t.Errorf("got %v, want that nothing was stored", err)
	}
	if s, err := storage.Open(dir, storage.Options{}); err != nil || s.Close() != nil {
		t.Errorf("a server cannot take the folder: %v", err)
	}
}
