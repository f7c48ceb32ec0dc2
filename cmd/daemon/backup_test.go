package daemon

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// slowly takes a while for each Write.
type slowly time.Duration

func (s slowly) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(s))
	return len(b), nil
}

func TestABackupRestsWhileClientsWriteAndNotOtherwise(t *testing.T) {
	for name, c := range map[string]struct {
		work time.Duration
		each uint64 // batches
		want time.Duration
	}{
		"nobody writes":   {time.Millisecond, 0, 10 * time.Millisecond},
		"clients write":   {time.Millisecond, 1, (10 + 9*restPart) * time.Millisecond},
		"a slow receiver": {time.Second, 1, (10 * time.Second) + 9*longestRest},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var batches uint64
				began, p := time.Now(), &polite{Writer: slowly(c.work), batches: func() uint64 { batches += c.each; return batches }}
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
