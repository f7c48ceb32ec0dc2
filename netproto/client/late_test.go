package client_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage"
)

// network is a proxy before a server. While it stalls, requests arrive and answers do not.
type network struct {
	addr    string
	road    sync.RWMutex // answers pass under the read lock
	extends atomic.Int64 // requests that were seen
	both    atomic.Int64 // answers that came together with a claim
}

func (n *network) stall()  { n.road.Lock() }
func (n *network) resume() { n.road.Unlock() }

// newNetwork makes a proxy until the end of the test.
func newNetwork(t testing.TB, server string) *network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	n := &network{addr: l.Addr().String()}
	var open sync.WaitGroup
	t.Cleanup(func() {
		ok(t, l.Close())
		open.Wait()
	})
	open.Go(func() { // ends when l is closed
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				_ = in.Close()
				continue
			}
			pass := func(to, from net.Conn, answers bool) { // ends with one of the connections
				defer to.Close()
				for b := make([]byte, 64<<10); ; {
					got, err := from.Read(b)
					if err != nil {
						return
					}
					if answers {
						n.road.RLock()
						n.road.RUnlock() //lint:ignore SA2001 it waits for the end of a stall
					}
					n.extends.Add(int64(bytes.Count(b[:got], []byte("QEXTEND"))))
					if bytes.Contains(b[:got], []byte("QACK")) && bytes.Contains(b[:got], []byte("QCLAIM")) {
						n.both.Add(1)
					}
					if _, err := to.Write(b[:got]); err != nil {
						return
					}
				}
			}
			open.Go(func() { pass(out, in, false) })
			open.Go(func() { pass(in, out, true) })
		}
	})
	return n
}

func TestAHandlerDoesNotBeginWhenTheClaimsAnswerComesAfterTheLease(t *testing.T) {
	t.Parallel()
	addr := startServer(t, storage.SyncNever())
	n, other, ctx := newNetwork(t, addr), connect(t, addr), t.Context()
	c := connect(t, n.addr)
	begun := make(chan string, 2)
	ended := consume(ctx, c, "q", func(_ context.Context, p *client.Packet) error {
		begun <- string(p.Payload)
		return nil
	}, client.Lease(300*time.Millisecond))
	blocked(t, other)
	n.stall()
	must(other.Push(ctx, "q", []byte("first")))(t)
	taken := must(other.Claim(ctx, "q", client.Block(limit), client.Lease(time.Hour)))(t)
	want(t, "packets of the other consumer", len(taken), 1)
	want(t, "attempt", taken[0].Attempt, 2)
	n.resume()
	must(other.Push(ctx, "q", []byte("second")))(t)
	want(t, "the packet that is begun", receive(t, begun), "second")
	drain(t, c)
	ok(t, receive(t, ended))
	ok(t, taken[0].Ack(ctx))
}

// Nothing stalls here: a packet that comes late looks the same as an answer that comes late.
func TestAHandlerBeginsWithANewLeaseWhenTheClaimsAnswerComesLate(t *testing.T) {
	t.Parallel()
	addr := startServer(t, storage.SyncNever())
	n, other, ctx := newNetwork(t, addr), connect(t, addr), t.Context()
	c := connect(t, n.addr)
	const lease = 9 * time.Second
	extends := make(chan int64, 2)
	ended := consume(ctx, c, "q", func(context.Context, *client.Packet) error {
		extends <- n.extends.Load()
		return nil
	}, client.Lease(lease))
	blocked(t, other)
	must(other.Push(ctx, "q", nil, client.Delay(lease/3+100*time.Millisecond)))(t)
	want(t, "renewals before a handler that is late", receive(t, extends), 1)
	must(other.Push(ctx, "q", nil))(t)
	want(t, "renewals before one that is not", receive(t, extends), 1)
	drain(t, c)
	ok(t, receive(t, ended))
}

func TestAHandlerDoesNotBeginWhenAClaimBesideAnAnswerComesAfterTheLease(t *testing.T) {
	t.Parallel()
	addr := startServer(t, storage.SyncNever())
	n, other, ctx := newNetwork(t, addr), connect(t, addr), t.Context()
	c := connect(t, n.addr)
	must(other.PushBatch(ctx, "q", [][]byte{nil, []byte("first"), []byte("second")}))(t)
	begun := make(chan string, 4)
	ended := consume(ctx, c, "q", func(_ context.Context, p *client.Packet) error {
		if string(p.Payload) == "first" { // the one before has made the connection of answers
			n.stall()
		}
		begun <- string(p.Payload)
		return nil
	}, client.Lease(300*time.Millisecond))
	want(t, "the packet that is begun", receive(t, begun), "")
	want(t, "the packet that is begun then", receive(t, begun), "first")
	for begin := time.Now(); must(other.Stats(ctx, "q"))(t).Acked < 2 && time.Since(begin) < limit; {
	}
	taken := must(other.Claim(ctx, "q", client.Block(limit), client.Lease(time.Hour)))(t)
	n.resume()
	want(t, "packets of the other consumer", len(taken), 1)
	must(other.Push(ctx, "q", []byte("third")))(t)
	want(t, "the packet that is begun next", receive(t, begun), "third")
	drain(t, c)
	ok(t, receive(t, ended))
	ok(t, taken[0].Ack(ctx))
}

func TestAnswersBringTheNextPacketsInTheSameRequest(t *testing.T) {
	t.Parallel()
	addr := startServer(t, storage.SyncNever())
	n, ctx := newNetwork(t, addr), t.Context()
	c := connect(t, n.addr)
	const packets = 100
	must(c.PushBatch(ctx, "q", make([][]byte, packets)))(t)
	handled := make(chan struct{}, packets)
	ended := consume(ctx, c, "q", func(context.Context, *client.Packet) error {
		handled <- struct{}{}
		return nil
	})
	for range packets {
		receive(t, handled)
	}
	drain(t, c)
	ok(t, receive(t, ended))
	if got := n.both.Load(); got == 0 {
		t.Errorf("no answer of %d came together with a claim", packets)
	}
}
