package loadgen

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// fakePinpriq is a pinpriq server without a disk, for the loops to run against.
// It keeps what was pushed in order and pops the newest, whatever its priority.
type fakePinpriq struct {
	addr string

	mu     sync.Mutex
	queues map[string][][]byte // packets as they came; under mu
	subs   map[string][]*fakeSub
	keys   map[uint64]int // how often each key was pushed; under mu
	levels map[byte]int   // how many packets were pushed with each priority; under mu
	popped int            // packets that left a queue; under mu
}

type fakeSub struct {
	credits int // under fakePinpriq.mu
	conn    net.Conn
}

// startFake serves until the test ends.
func startFake(t *testing.T) *fakePinpriq {
	t.Helper()
	f := &fakePinpriq{
		queues: map[string][][]byte{},
		subs:   map[string][]*fakeSub{}, keys: map[uint64]int{}, levels: map[byte]int{},
	}
	f.addr = listenFake(t, f.serve)
	return f
}

// listenFake serves each connection until the test ends, and returns the address.
func listenFake(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		done.Wait()
	})
	return l.Addr().String()
}

func (f *fakePinpriq) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	sub := &fakeSub{conn: conn}
	for {
		frame, err := r.ReadByte()
		if err != nil {
			f.leave(sub)
			return
		}
		switch pinpriq.Op(frame) {
		case pinpriq.OpPush:
			head := readN(r, 5)
			packet := readN(r, 4)
			packet = append(packet, readN(r, int(binary.BigEndian.Uint16(packet))+int(binary.BigEndian.Uint16(packet[2:])))...)
			f.push(string(readN(r, int(binary.BigEndian.Uint16(head)))), head[4], packet)
		case pinpriq.OpPop:
			name := string(readN(r, int(binary.BigEndian.Uint16(readN(r, 2)))))
			f.pop(conn, name)
		case pinpriq.OpSubscribe:
			name := string(readN(r, int(binary.BigEndian.Uint16(readN(r, 2)))))
			f.mu.Lock()
			f.subs[name] = append(f.subs[name], sub)
			f.mu.Unlock()
		case pinpriq.OpReady:
			f.mu.Lock()
			sub.credits++
			for name := range f.subs {
				f.dispatchLocked(name)
			}
			f.mu.Unlock()
		}
	}
}

func readN(r io.Reader, n int) []byte {
	b := make([]byte, n)
	_, _ = io.ReadFull(r, b) // a cut frame ends the connection at the next read
	return b
}

func (f *fakePinpriq) push(name string, priority byte, packet []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queues[name] = append(f.queues[name], packet)
	f.keys[binary.BigEndian.Uint64(packet[4:])]++
	f.levels[priority]++
	f.dispatchLocked(name)
}

func (f *fakePinpriq) pop(to net.Conn, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	packets := f.queues[name]
	if len(packets) == 0 {
		_, _ = to.Write([]byte{0, 0})
		return
	}
	f.takeLocked(to, name)
}

// takeLocked sends the newest packet. Writing under the lock keeps deliveries
// whole; the clients always read.
func (f *fakePinpriq) takeLocked(to net.Conn, name string) {
	packets := f.queues[name]
	last := len(packets) - 1
	_, _ = to.Write(append([]byte{0, 1}, packets[last]...))
	f.queues[name] = packets[:last]
	f.popped++
}

func (f *fakePinpriq) dispatchLocked(name string) {
	for _, sub := range f.subs[name] {
		for sub.credits > 0 && len(f.queues[name]) > 0 {
			sub.credits--
			f.takeLocked(sub.conn, name)
		}
	}
}

func (f *fakePinpriq) leave(sub *fakeSub) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sub.credits = 0
}

// state returns the packets pushed, how many keys came more than once, and the
// packets popped.
func (f *fakePinpriq) state() (pushed, twice, popped int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.keys {
		pushed += n
		if n > 1 {
			twice++
		}
	}
	return pushed, twice, f.popped
}
