package daemon

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// slowly takes a while for each Write.
type slowly time.Duration

func (s slowly) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(s))
	return len(b), nil
}

func TestABackupRestsWhileClientsWriteAndNotOtherwise(t *testing.T) {
	for name, c := range map[string]struct {
		work, every time.Duration // and how often clients write
		want        time.Duration
	}{
		"nobody writes":           {time.Millisecond, time.Hour, 10 * time.Millisecond},
		"clients write":           {time.Millisecond, time.Millisecond, (10 + 9*restPart) * time.Millisecond},
		"they write meanwhile":    {time.Millisecond, 3 * time.Millisecond, (10 + 8*restPart) * time.Millisecond},
		"they write now and then": {time.Millisecond, 100 * time.Millisecond, 10 * time.Millisecond},
		"a slow receiver":         {time.Second, time.Second, (10 * time.Second) + 9*longestRest},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, seen := time.Now(), time.Duration(0)
				p := &polite{Writer: slowly(c.work), busy: func() bool {
					before := seen
					seen = time.Since(began) / c.every
					return seen != before
				}}
				for range 10 {
					if _, err := io.WriteString(p, "piece"); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(began); took != c.want {
					t.Errorf("ten writes took %v, want %v", took, c.want)
				}
			})
		})
	}
}

func TestABackupSeesThatClientsHaveWritten(t *testing.T) {
	s, err := storage.Open(t.TempDir(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	written := busy(s)
	if written() {
		t.Error("nobody has written, and it is busy")
	}
	var b content.Batch
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 1}, &content.Packet{})
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if first, again := written(), written(); !first || again {
		t.Errorf("after a batch it is busy %v, and then %v", first, again)
	}
}
