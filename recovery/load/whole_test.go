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
	"github.com/holdfast-queue/holdfast/storage/content"
)

// stopper ends a load once so many bytes were read.
type stopper struct {
	io.Reader
	left int
	stop context.CancelFunc
}

func (s *stopper) Read(b []byte) (int, error) {
	if s.left <= 0 {
		s.stop()
	}
	n, err := s.Reader.Read(b[:min(len(b), 200)])
	s.left -= n
	return n, err
}

// ofAll has packets, some of them with delivery states, and strings and hashes.
func ofAll(packets int) *recoverytest.Fake {
	s := recoverytest.Many(packets)
	keys := manyKeys(min(packets/4, 400))
	s.Keys.Apply(allOf(keys))
	s.Counted.LastKey = keys.Counted.LastKey
	for i := range s.Stored {
		p := &s.Stored[i]
		if i%5 == 0 {
			s.Try(content.Delivery{Identity: p.ID.Seq, State: content.Dead, Attempts: 1, Token: p.ID.Seq, Origin: 7}).Reason = "why"
		}
		if i%7 == 0 {
			p.Packet.Payload = bytes.Repeat([]byte{'x'}, 3000)
		}
	}
	var b content.Batch
	b.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: 3, Identity: 1<<63 + 1}, ID: []byte("once"), Until: recoverytest.Later + 9})
	s.Keys.Apply(&b)
	s.Count()
	return s
}

// allOf is a batch with all strings and hashes of a source.
func allOf(s *recoverytest.Fake) *content.Batch {
	var b content.Batch
	_ = s.Items(func(_ content.ValueID, h *content.Head, f *content.Field, _ error) error {
		if h != nil {
			b.PutHead(h, content.Mark{})
		} else {
			b.PutField(f, content.Mark{})
		}
		return nil
	})
	return &b
}

// stopped loads a share of a dump, and returns the error.
func stopped(t *testing.T, dir string, text []byte, share float64) error {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o := Options{Now: recoverytest.Later, batchBytes: 32 << 10}
	_, err := Load(ctx, dir, &stopper{bytes.NewReader(text), int(share * float64(len(text))), stop}, o)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped at %v of the dump: %v", share, err)
	}
	return err
}

func TestAStoppedLoadLeavesTheFolderAsItWas(t *testing.T) {
	if testing.Short() {
		t.Skip("twenty folders are loaded")
	}
	text, _ := dumpOf(t, ofAll(9000), dump.Options{})
	dir, whole := t.TempDir(), t.TempDir()
	load(t, dir, []byte(head+`{"type":"end"}`), Options{}) // makes the folder
	before := folderDump(t, dir, dump.Options{})
	for _, share := range []float64{0.1, 0.7, 0.99} {
		if err := stopped(t, dir, text, share); !strings.Contains(err.Error(), "nothing was stored") {
			t.Errorf("stopped at %v it says %v", share, err)
		}
		if after := folderDump(t, dir, dump.Options{}); !bytes.Equal(after, before) {
			t.Fatalf("got\n%s\nwant\n%s", after, before)
		}
		if report := verified(t, dir); !report.Sound() {
			t.Errorf("findings %v", report.Findings)
		}
	}
	if again, first := load(t, dir, text, Options{}), load(t, whole, text, Options{}); again.Packets != first.Packets || again.Keys != first.Keys {
		t.Errorf("report %+v, want %+v", again, first)
	}
	if got, want := contentsOf(t, dir), contentsOf(t, whole); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if report := verified(t, dir); !report.Sound() {
		t.Errorf("findings %v", report.Findings)
	}
}

// contentsOf is what a folder holds, without numbers that a load gives.
func contentsOf(t *testing.T, dir string) string {
	var all strings.Builder
	_, err := dump.Read(t.Context(), bytes.NewReader(folderDump(t, dir, dump.Options{})), func(r *dump.Record) error {
		if r.Type == dump.TypeHeader || r.Type == dump.TypeEnd {
			return nil
		}
		if r.Type != dump.TypePacket {
			fmt.Fprintf(&all, "%d:%q %q %q %d %x\n", r.Database, r.Queue, r.Hash, r.Name, r.Expires, r.Value)
			return nil
		}
		id, p, d := r.Packet()
		p.Identity = 0
		fmt.Fprintf(&all, "%d %x", id.Priority, content.AppendRecord(nil, p))
		if d != nil {
			fmt.Fprintf(&all, " %d %q %q", d.State, d.Reason, d.OriginName)
		}
		all.WriteByte('\n')
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestAFolderWithAnythingInItIsNotEmpty(t *testing.T) {
	text, _ := dumpOf(t, manyKeys(1), dump.Options{})
	for name, src := range map[string]*recoverytest.Fake{"strings": manyKeys(3), "queues": {Counted: manyKeys(1).Counted, Defined: recoverytest.Many(1).Defined}} {
		if _, err := Load(t.Context(), recoverytest.InFolder(t, src), bytes.NewReader(text), Options{}); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
