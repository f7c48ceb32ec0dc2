package inmemory

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

func (b *bench) network() *Network { return &Network{Server: b.server, Loop: b.loop} }

func (b *bench) dial(n *Network) (*Client, *bufio.Reader) {
	b.t.Helper()
	c, err := n.Dial()
	if err != nil {
		b.t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

func (b *bench) wantLine(r *bufio.Reader, want string, why error) {
	b.t.Helper()
	if got, err := r.ReadString('\n'); got != want || err != why {
		b.t.Errorf("read %q, %v, want %q, %v", got, err, want, why)
	}
}

func TestAReadMakesTurnsUntilSomethingComesAndFailsWhereNothingWill(t *testing.T) {
	b := newBench(t)
	n := b.network()
	c, in := b.dial(n)
	other, _ := b.dial(n)
	if c.Addr() == other.Addr() {
		t.Error("two clients are at one place")
	}
	b.wantLine(in, "", ErrNothing)
	_, _ = c.Write([]byte("PING\r\nBLPOP q 0.5\r\n"))
	if b.loop.Idle() != 0 {
		t.Error("a loop to which something has come would wait")
	}
	b.wantLine(in, "+PONG\r\n", nil)
	b.wantLine(in, "", ErrNothing)
	n.Wait = func() bool { // its time is over
		b.now += b.loop.Idle().Milliseconds()
		return true
	}
	b.wantLine(in, "*-1\r\n", nil)
	_, _ = other.Write([]byte("SUBSCRIBE x\r\nPUBLISH x y\r\n"))
	if err := n.Settle(); err != nil || len(other.Arrived()) == 0 {
		t.Errorf("%d bytes have come, %v", len(other.Arrived()), err)
	}
	_, _ = c.Write([]byte("LPUSH q a\r\n"))
	_ = c.Close()
	b.wantLine(in, "", net.ErrClosed)
	if err := n.Settle(); err != nil || !c.Closed() {
		t.Error("a client that has hung up is connected", err)
	}
}

func TestTurnsAreMadeForThoseWhoWaitForTheLoop(t *testing.T) {
	b := newBench(t)
	n := b.network()
	c, in := b.dial(n)
	_, _ = c.Write([]byte("PING\r\n"))
	mistake := errors.New("as it was told")
	if err := n.Await(func() error { return b.loop.Do(func(*broker.Tx) error { return mistake }) }); err != mistake {
		t.Error(err)
	}
	if err := n.Await(func() error { return b.server.Shutdown(t.Context()) }); err != nil {
		t.Error(err)
	}
	b.wantLine(in, "+PONG\r\n", nil)
	b.wantLine(in, "", io.EOF)
}
