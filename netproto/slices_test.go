package netproto

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// inSlices is a protocol that echoes lines, but carries "many" out in slices until it is told to
// end.
type inSlices struct {
	made atomic.Int64
	end  atomic.Bool
}

func (p *inSlices) Name() string { return "slices" }

func (p *inSlices) Delivery() broker.Selection { return broker.Selection{} }

func (p *inSlices) Open(peer *Peer) Session { return &sliceSession{p, peer} }

type sliceSession struct {
	protocol *inSlices
	peer     *Peer
}

func (s *sliceSession) Serve(_ *broker.Tx, buf []byte) (n int, stop Stop, err error) {
	for {
		end := bytes.IndexByte(buf[n:], '\n')
		if end < 0 {
			return n, Incomplete, nil
		}
		line := buf[n : n+end+1]
		if string(line) == "many\n" {
			s.protocol.made.Add(1)
			if !s.protocol.end.Load() {
				return n, Unfinished, nil
			}
		}
		s.peer.Out = append(s.peer.Out, line...)
		n += end + 1
	}
}

func serveSlices(t *testing.T) (*Server, *inSlices) {
	p := &inSlices{}
	return serve(t, Config{Protocol: p}), p
}

func TestARequestInSlicesGoesOnByItselfAndOthersAreServedMeanwhile(t *testing.T) {
	s, p := serveSlices(t)
	c, other := dial(t, s), dial(t, s)
	send(t, c, "first\nmany\n")
	wantRead(t, c, "first\n")
	waitFor(t, func() bool { return p.made.Load() > 100 })
	send(t, other, "hello\n")
	wantRead(t, other, "hello\n")
	send(t, c, "behind\n")
	p.end.Store(true)
	wantRead(t, c, "many\nbehind\n")
}

func TestAHangUpStopsARequestInSlices(t *testing.T) {
	s, p := serveSlices(t)
	c := dial(t, s)
	send(t, c, "many\n")
	waitFor(t, func() bool { return p.made.Load() > 0 })
	_ = c.Close()
	s.waitConns(t, 0)
}
