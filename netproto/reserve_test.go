package netproto

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// sized is a protocol of requests that announce how many bytes follow their first line, which is
// the reply.
type sized struct {
	most int // bytes that were reserved at a time
}

func (p *sized) Name() string { return "sized" }

func (p *sized) Delivery() broker.Selection { return broker.Selection{} }

func (p *sized) Open(peer *Peer) Session { return sizedSession{p, peer} }

type sizedSession struct {
	*sized
	peer *Peer
}

func (s sizedSession) Serve(_ *broker.Tx, buf []byte) (n int, stop Stop, err error) {
	s.most = max(s.most, s.peer.c.server.config.Buffers.reserved)
	for {
		line, rest, whole := bytes.Cut(buf[n:], []byte("\n"))
		if !whole {
			return n, Incomplete, nil
		}
		size, _ := strconv.Atoi(string(line))
		if len(rest) < size {
			s.peer.Announce(len(line) + 1 + size)
			return n, Incomplete, nil
		}
		s.peer.Out = append(append(s.peer.Out, line...), '\n')
		n += len(line) + 1 + size
	}
}

const (
	longSize    = 5 << 20
	longBuffers = 24 << 20 // room for three of them
)

// long is the beginning of a long request, and the rest.
func long() (begin, rest string) {
	return strconv.Itoa(longSize) + "\nbegin", strings.Repeat("x", longSize-len("begin"))
}

func TestLongRequestsAreAllServedWhereThereIsRoomForFew(t *testing.T) {
	p := &sized{}
	s := serve(t, Config{Protocol: p, Buffers: NewBuffers(longBuffers)})
	begin, rest := long()
	var all sync.WaitGroup
	for range 12 {
		c := dial(t, s)
		all.Go(func() { // ends with the reply, or the connection
			_, _ = io.WriteString(c, begin+rest+begin+rest)
			got := make([]byte, 2*len("5242880\n"))
			if _, err := io.ReadFull(c, got); err != nil {
				t.Errorf("no reply: %v", err)
			}
		})
	}
	all.Wait()
	var most int
	_ = s.config.Loop.Do(func(*broker.Tx) error { most = p.most; return nil })
	if most < longSize || most > longBuffers {
		t.Errorf("%d bytes were reserved, of %d", most, longBuffers)
	}
	s.waitBegun(t, 0)
}

func TestHalfSentLongRequestsHoldNobodyUpForEver(t *testing.T) {
	s := serve(t, Config{Protocol: &sized{}, Buffers: NewBuffers(longBuffers), FrameTimeout: time.Second})
	begin, rest := long()
	for range 6 { // three are read, and end after a second
		send(t, dial(t, s), begin)
	}
	buffers := s.config.Buffers
	waitFor(t, func() (ok bool) {
		_ = s.config.Loop.Do(func(*broker.Tx) error {
			ok = len(buffers.waiting) == 3
			return nil
		})
		return ok
	})
	c := dial(t, s)
	send(t, c, "0\n")
	wantRead(t, c, "0\n")
	go func() { _, _ = io.WriteString(c, begin+rest) }() // ends with the test
	wantRead(t, c, strconv.Itoa(longSize)+"\n")
	s.waitConns(t, 1)
	_ = c.Close()
	s.waitBegun(t, 0)
	_ = s.config.Loop.Do(func(*broker.Tx) error {
		if buffers.reserved != 0 || len(buffers.waiting) > 0 {
			t.Errorf("%d bytes are reserved, and %d wait, after all", buffers.reserved, len(buffers.waiting))
		}
		return nil
	})
}

func TestALongRequestMayTakeAsLongAsItComesOn(t *testing.T) {
	const timeout = 500 * time.Millisecond
	s := serve(t, Config{Protocol: &sized{}, FrameTimeout: timeout})
	begin, rest := long()
	c := dial(t, s)
	send(t, c, begin)
	for at := 0; at < len(rest); at += frameBytes {
		send(t, c, rest[at:min(at+frameBytes, len(rest))])
		<-time.After(timeout / 3)
	}
	wantRead(t, c, strconv.Itoa(longSize)+"\n")
}
