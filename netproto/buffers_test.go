package netproto

import (
	"context"
	"strings"
	"testing"
	"time"
)

// begun waits until the buffers of requests that have begun have so many bytes.
func (b *Buffers) begun(t *testing.T, want int64) {
	t.Helper()
	waitFor(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.sum == want
	})
}

func TestTheLargestOfTooManyUnfinishedRequestsIsClosed(t *testing.T) {
	buffers := NewBuffers(3 << 20)
	s, _ := serveLines(t, Config{Buffers: buffers})
	other, _ := serveLines(t, Config{Buffers: buffers}) // another door shares the sum
	small, large, last := dial(t, s), dial(t, other), dial(t, s)
	send(t, small, strings.Repeat("s", 200<<10))
	buffers.begun(t, 256<<10-maxReadBuffer)
	send(t, large, strings.Repeat("l", 1100<<10))
	buffers.begun(t, (256+2048)<<10-2*maxReadBuffer)
	send(t, last, strings.Repeat("x", 600<<10))
	wantEnd(t, large)
	send(t, small, "\n")
	wantRead(t, small, strings.Repeat("s", 200<<10)+"\n")
	send(t, last, "\n")
	wantRead(t, last, strings.Repeat("x", 600<<10)+"\n")
	_ = small.Close()
	_ = last.Close()
	buffers.begun(t, 0)
}

func TestARequestThatIsTooLongForAllBuffersClosesItsOwnConnection(t *testing.T) {
	s, _ := serveLines(t, Config{Buffers: NewBuffers(1 << 20)})
	c := dial(t, s)
	go func() { _, _ = c.Write(make([]byte, 4<<20)) }() // ends with the connection
	wantEnd(t, c)
}

func TestALargeBufferBehindARequestThatWaitsIsClosed(t *testing.T) {
	buffers := NewBuffers(1 << 20)
	s, p := serveWaits(t, Config{Buffers: buffers})
	c, other := dial(t, s), dial(t, s)
	send(t, c, strings.Repeat("x", 600<<10)+"\nwait\nhalf a line")
	wantRead(t, c, strings.Repeat("x", 600<<10)+"\n")
	p.until(t, 1, 2)
	send(t, other, strings.Repeat("y", 200<<10))
	wantEnd(t, c)
	send(t, other, "\n")
	wantRead(t, other, strings.Repeat("y", 200<<10)+"\n")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}
