package fuzz

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"github.com/holdfast-queue/holdfast/recovery"
)

const (
	brokerConns = 3
	maxSteps    = 100 // of one input, so that it does not take long
	longWait    = 5 * time.Second
)

// world is a server on a store in memory, with a clock that the test sets, its connections, and the
// model of all of them.
type world struct {
	t       *testing.T
	store   *memStore
	clock   atomic.Int64
	model   *model
	loop    *netproto.Loop
	server  *netproto.Server
	served  chan error
	conns   []net.Conn
	readers []*bufio.Reader
}

// FuzzBroker turns bytes into operations of three connections and compares everything that the
// server sends with the model.
func FuzzBroker(f *testing.F) {
	f.Add([]byte("push and pop and subscribe, whatever these bytes say"))
	f.Add([]byte{0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0})
	f.Add([]byte{2, 0, 4, 0, 0, 0, 1, 0, 1, 0, 4, 0, 0, 0, 5, 1, 3, 0, 6, 0, 7, 0, 1, 0})
	seed := make([]byte, 3*maxSteps)
	for x, i := uint32(1), 0; i < len(seed); i++ {
		x = x*1664525 + 1013904223
		seed[i] = byte(x >> 24)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, input []byte) {
		w := &world{t: t, store: newMemStore(), model: newModel(brokerConns)}
		w.clock.Store(1_000_000)
		w.start()
		defer w.stop()
		for steps := 0; len(input) >= 3 && steps < maxSteps; steps++ {
			w.step(input[0], input[1], input[2])
			input = input[3:]
			w.compare()
		}
		w.finish()
	})
}

// start recovers the store and opens all connections.
func (w *world) start() {
	state, err := recovery.Restore(w.store, recovery.Options{Now: w.clock.Load()})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(state.Report.Findings) > 0 {
		w.t.Fatalf("findings: %v", state.Report.Findings)
	}
	w.loop, err = netproto.StartLoop(broker.New(w.store, state, broker.Options{Cache: 1}), w.store, netproto.LoopConfig{Clock: w.clock.Load})
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := netproto.Listen("127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = netproto.NewServer(l, netproto.Config{Protocol: pinpriq.Protocol{}, Loop: w.loop})
	w.served = make(chan error, 1)
	go func() { w.served <- w.server.Serve() }() // ends with stop
	w.conns, w.readers = nil, nil
	for range brokerConns {
		conn, err := net.Dial("tcp", w.server.Addr().String())
		if err != nil {
			w.t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(longWait))
		_ = conn.(*net.TCPConn).SetLinger(0) // otherwise ports would run out
		w.conns = append(w.conns, conn)
		w.readers = append(w.readers, bufio.NewReader(conn))
	}
}

func (w *world) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), longWait)
	defer cancel()
	for _, conn := range w.conns {
		conn.Close()
	}
	if err := w.server.Shutdown(ctx); err != nil {
		w.t.Errorf("shutdown: %v", err)
	}
	if err := <-w.served; err != nil {
		w.t.Errorf("serve: %v", err)
	}
	if err := w.loop.Close(); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

// step carries out one operation on the server and on the model.
func (w *world) step(what, a, b byte) {
	c, queue := int(a)%brokerConns, string('p'+rune(a>>2)%3)
	switch what % 16 {
	case 0, 1, 2, 3, 4, 5:
		w.push(c, queue, a, b)
	case 6, 7, 8:
		w.model.pop(c, queue)
		w.send(c, pinpriq.Request{Op: pinpriq.OpPop, Queue: []byte(queue)})
	case 9, 10:
		w.model.subscribe(c, queue)
		w.send(c, pinpriq.Request{Op: pinpriq.OpSubscribe, Queue: []byte(queue)})
	case 11:
		w.model.unsubscribe(c, queue)
		w.send(c, pinpriq.Request{Op: pinpriq.OpUnsubscribe, Queue: []byte(queue)})
	case 12, 13:
		w.model.ready(c)
		w.send(c, pinpriq.Request{Op: pinpriq.OpReady})
	case 14:
		w.model.now += int64(a) + 1
		w.clock.Add(int64(a) + 1)
	case 15:
		if b%4 == 0 { // rarely: it takes as long as all the others
			w.stop()
			w.model.connect(brokerConns)
			w.start()
		}
	}
}

func (w *world) push(c int, queue string, a, b byte) {
	p := modelPacket{
		prio:    b % 4,
		key:     strings.Repeat("k", int(b>>2)%5),
		payload: fmt.Sprint(w.model.seq),
	}
	if b>>6 == 3 {
		p.payload += strings.Repeat("x", 3000) // long enough for a record of its own
	}
	ttl := 0
	if a>>6 == 1 {
		ttl = 1 + int(b)
		p.expiry = w.clock.Load() + int64(ttl)
	}
	w.model.now = w.clock.Load()
	w.model.push(queue, p)
	w.send(c, pinpriq.Request{
		Op: pinpriq.OpPush, Queue: []byte(queue), Priority: p.prio, TTL: uint16(ttl),
		Packet: pinpriq.Packet{Key: []byte(p.key), Payload: []byte(p.payload)},
	})
}

// barrierQueue is popped and never pushed to.
const barrierQueue = "barrier"

// send sends a request and a barrier, so that the server carries it out before the next operation
// of another connection.
func (w *world) send(c int, r pinpriq.Request) {
	out, err := r.Append(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	barrier := pinpriq.Request{Op: pinpriq.OpPop, Queue: []byte(barrierQueue)}
	out, _ = barrier.Append(out)
	if _, err := w.conns[c].Write(out); err != nil {
		w.t.Fatal(err)
	}
	w.model.now = w.clock.Load()
	w.model.pop(c, barrierQueue)
}

// compare reads what the model says has been sent.
func (w *world) compare() {
	w.t.Helper()
	for c, conn := range w.model.conns {
		for _, want := range conn.sent {
			got, err := readReply(w.readers[c])
			if err != nil {
				w.t.Fatalf("connection %d: %v, expected %v", c, err, shown(want))
			}
			if got != shown(want) {
				w.t.Fatalf("connection %d got %v, expected %v", c, got, shown(want))
			}
		}
		conn.sent = nil
	}
}

// finish checks that no connection was sent more, and that the queues hold what they should.
func (w *world) finish() {
	for c := range w.conns {
		w.model.pop(c, barrierQueue)
		w.send(c, pinpriq.Request{Op: pinpriq.OpPop, Queue: []byte(barrierQueue)})
	}
	w.compare()
	for queue := range w.model.queues {
		for left := 1; left > 0; left = len(w.model.queues[queue]) {
			before := len(w.model.queues[queue])
			w.model.pop(0, queue)
			w.send(0, pinpriq.Request{Op: pinpriq.OpPop, Queue: []byte(queue)})
			if len(w.model.queues[queue]) == before {
				break // only priority 0 is left
			}
		}
	}
	w.compare()
}

// shown is a reply as text.
func shown(packets []modelPacket) string {
	var b strings.Builder
	for _, p := range packets {
		fmt.Fprintf(&b, "[%q %.20q]", p.key, p.payload)
	}
	return b.String()
}

func readReply(in *bufio.Reader) (string, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:2]); err != nil {
		return "", err
	}
	var packets []modelPacket
	for range binary.BigEndian.Uint16(head[:]) {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return "", err
		}
		key, payload := int(binary.BigEndian.Uint16(head[:])), int(binary.BigEndian.Uint16(head[2:]))
		both := make([]byte, key+payload)
		if _, err := io.ReadFull(in, both); err != nil {
			return "", err
		}
		packets = append(packets, modelPacket{key: string(both[:key]), payload: string(both[key:])})
	}
	return shown(packets), nil
}
