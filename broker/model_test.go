package broker_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/recovery"
)

// groups is what most tests pop: the newest packet and its group, whatever their length.
var groups = broker.Selection{End: broker.Newest, Group: true}

// inbox is a Receiver that keeps what it gets: what calls for it found (reply), and deliveries.
type inbox struct {
	got     [][]string // payloads of each reply or delivery
	unsent  int64
	address string
	again   func(tx *broker.Tx, expired bool) // the request that waits
}

// box is what all receivers of tests have in common.
type box interface {
	broker.Receiver
	keep(found broker.Found)
	say(text string)
	waits(again func(tx *broker.Tx, expired bool))
}

func (r *inbox) keep(f broker.Found) {
	reply := make([]string, len(f.Packets))
	for i, p := range f.Packets {
		reply[i] = string(p.Payload)
	}
	r.got = append(r.got, reply)
}

func (r *inbox) say(text string)                               { r.got = append(r.got, []string{text}) }
func (r *inbox) waits(again func(tx *broker.Tx, expired bool)) { r.again = again }
func (r *inbox) Deliver(packets []broker.Packet)               { r.keep(broker.Found{Packets: packets}) }
func (r *inbox) Again(tx *broker.Tx, queue []byte)             { r.again(tx, queue == nil) }
func (r *inbox) Unsent() int64                                 { return r.unsent }
func (r *inbox) Address() string                               { return r.address }

func boxOf(c *broker.Conn) box { return c.Receiver().(box) }

// reply keeps what a call found in the box of a connection, as a session encodes it.
func reply(c *broker.Conn) func(broker.Found, error) error {
	return func(f broker.Found, err error) error {
		if err == nil {
			boxOf(c).keep(f)
		}
		return err
	}
}

// replyMoved is reply for a call that replies only with what it found, if it found something.
func replyMoved(c *broker.Conn) func(broker.Found, error) (bool, error) {
	return func(f broker.Found, err error) (bool, error) {
		if err == nil && len(f.Packets) > 0 {
			boxOf(c).keep(f)
		}
		return len(f.Packets) > 0, err
	}
}

// listed is reply for List.
func listed(c *broker.Conn) func(broker.Found, broker.PageEnd, error) (broker.PageEnd, error) {
	return func(f broker.Found, end broker.PageEnd, err error) (broker.PageEnd, error) {
		return end, reply(c)(f, err)
	}
}

// harness is a machine on a memStore with clocks that only the test moves.
type harness struct {
	t           tester
	store       *memStore
	b           *driver
	now         atomic.Int64
	steadyClock func() int64 // now, if nil
	o           broker.Options
	findings    int // of a start
}

// tester is what testing.T and rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

const startTime = 1_700_000_000_000

func newHarness(t tester) *harness {
	h := &harness{t: t, store: newMemStore()}
	h.now.Store(startTime)
	h.store.clock = h.now.Load
	h.start()
	return h
}

func (h *harness) start() {
	h.t.Helper()
	state, err := recovery.Restore(h.store, recovery.Options{Now: h.now.Load(), Defaults: h.o.Defaults})
	if err != nil {
		h.t.Fatalf("recovery: %v", err)
	}
	if len(state.Report.Findings) != h.findings {
		h.t.Fatalf("recovery found: %v", state.Report.Findings)
	}
	o := h.o
	o.Cache = 1 << 16
	h.b = newDriver(h.store, state, o, h.clocks)
}

func (h *harness) clocks() (now, steady int64) {
	if now = h.now.Load(); h.steadyClock != nil {
		return now, h.steadyClock()
	}
	return now, now
}

func (h *harness) restart() {
	h.t.Helper()
	if err := h.b.Close(); err != nil {
		h.t.Fatalf("close: %v", err)
	}
	h.start()
}

// close ends the machine.
func (h *harness) close() { _ = h.b.Close() }

func (h *harness) do(fn func(tx *broker.Tx) error) {
	h.t.Helper()
	if err := h.b.Do(fn); err != nil {
		h.t.Fatalf("call failed: %v", err)
	}
}

func (h *harness) push(queue string, priority uint32, ttl time.Duration, key, payload string) {
	h.t.Helper()
	h.do(func(tx *broker.Tx) error {
		return pushError(tx.Push(broker.PushRequest{
			Queue: []byte(queue), Priority: priority, TTL: ttl, Key: []byte(key), Payload: []byte(payload),
		}))
	})
}

func (h *harness) pop(c *broker.Conn, queue string) {
	h.t.Helper()
	h.do(func(tx *broker.Tx) error { return reply(c)(tx.Pop([]byte(queue), groups)) })
}

// barrier brings all that was called before it to disk.
func (h *harness) barrier() {
	h.t.Helper()
	h.b.round()
	if h.b.err != nil {
		h.t.Fatalf("machine failed: %v", h.b.err)
	}
}

// comesTrue lets turns without calls pass until a condition is true.
func (h *harness) comesTrue(ok func() bool) {
	h.t.Helper()
	for range 10_000 {
		if ok() {
			return
		}
		h.barrier()
	}
	h.t.Fatal("condition did not come true in 10,000 turns")
}

// model is the dumbest thing that obeys the pinpriq document and the readings in its PROTOCOL.md.
type model struct {
	packets []modelPacket // in the order of their pushes
	subs    []*modelSub
	line    []*modelSub // those with credits, the one ready longest first
	seq     int
}

type modelPacket struct {
	queue, key, payload string
	priority            uint32
	expiry              int64
	seq                 int
}

type modelSub struct {
	queues  []string
	credits int
	want    [][]string // what its inbox must hold
}

func (m *model) expire(now int64) {
	m.packets = slices.DeleteFunc(m.packets, func(p modelPacket) bool { return p.expiry != 0 && p.expiry <= now })
}

// better orders by the rule of selection; priority 0 comes last.
func better(a, b modelPacket) int {
	if (a.priority == 0) != (b.priority == 0) {
		return cmp.Compare(b.priority, a.priority)
	}
	return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(b.seq, a.seq))
}

// best returns the index of the packet that a consumer of these queues gets next, or -1.
func (m *model) best(queues ...string) int {
	found := -1
	for i, p := range m.packets {
		if p.priority != 0 && slices.Contains(queues, p.queue) && (found < 0 || better(p, m.packets[found]) < 0) {
			found = i
		}
	}
	return found
}

// take removes the packet and its group, and returns their payloads in order.
func (m *model) take(i int) []string {
	chosen := m.packets[i]
	var group []modelPacket
	m.packets = slices.DeleteFunc(m.packets, func(p modelPacket) bool {
		if p.queue == chosen.queue && p.key == chosen.key && p.seq != chosen.seq {
			group = append(group, p)
		}
		return p.queue == chosen.queue && p.key == chosen.key
	})
	slices.SortFunc(group, better)
	out := []string{chosen.payload}
	for _, p := range group {
		out = append(out, p.payload)
	}
	return out
}

func (m *model) pop(s *modelSub, queue string) {
	out := []string{}
	if i := m.best(queue); i >= 0 {
		out = m.take(i)
	}
	s.want = append(s.want, out)
}

// settle makes all deliveries that are possible.
func (m *model) settle() {
	for again := true; again; {
		again = false
		for at, s := range m.line {
			i := m.best(s.queues...)
			if i < 0 {
				continue
			}
			s.want = append(s.want, m.take(i))
			s.credits--
			m.line = slices.Delete(m.line, at, at+1)
			if s.credits > 0 {
				m.line = append(m.line, s)
			}
			again = true
			break
		}
	}
}

func (m *model) ready(s *modelSub) {
	if s.credits++; s.credits == 1 {
		m.line = append(m.line, s)
	}
}

func TestBrokerDoesWhatTheModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarness(t)
		defer func() { _ = h.b.Close() }()
		var m model
		var boxes []*inbox
		var consumers []*broker.Conn
		attach := func() {
			boxes, consumers, m.subs, m.line = nil, nil, nil, nil
			for range 3 {
				box := &inbox{}
				boxes, consumers = append(boxes, box), append(consumers, h.b.Attach(box, groups))
				m.subs = append(m.subs, &modelSub{})
			}
		}
		attach()
		queue := rapid.SampledFrom([]string{"", "a", "b"})
		key := rapid.SampledFrom([]string{"", "k", "l", "m"})
		who := rapid.IntRange(0, 2)
		check := func() {
			h.barrier()
			for i, box := range boxes {
				if want := m.subs[i].want; !slices.EqualFunc(box.got, want, slices.Equal) {
					t.Fatalf("consumer %d got %q, want %q", i, box.got, want)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "n") {
					m.seq++
					p := modelPacket{
						queue: queue.Draw(t, "queue"), key: key.Draw(t, "key"), seq: m.seq,
						priority: rapid.Uint32Range(0, 3).Draw(t, "priority"),
					}
					p.payload = fmt.Sprintf("%d", m.seq)
					if rapid.IntRange(0, 9).Draw(t, "size") == 0 {
						p.payload += string(bytes.Repeat([]byte{'.'}, rapid.IntRange(1, 20_000).Draw(t, "long")))
					}
					var ttl time.Duration
					if rapid.Bool().Draw(t, "expires") {
						ttl = time.Duration(rapid.IntRange(1, 50).Draw(t, "ttl")) * time.Millisecond
						p.expiry = h.now.Load() + ttl.Milliseconds()
					}
					h.push(p.queue, p.priority, ttl, p.key, p.payload)
					m.packets = append(m.packets, p)
					m.settle()
				}
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "n") {
					c, q := who.Draw(t, "who"), queue.Draw(t, "queue")
					h.pop(consumers[c], q)
					m.pop(m.subs[c], q)
				}
			},
			"subscribe": func(t *rapid.T) {
				c, q := who.Draw(t, "who"), queue.Draw(t, "queue")
				h.do(func(tx *broker.Tx) error { return tx.Subscribe(consumers[c], []byte(q)) })
				if s := m.subs[c]; !slices.Contains(s.queues, q) {
					s.queues = append(s.queues, q)
				}
				m.settle()
			},
			"unsubscribe": func(t *rapid.T) {
				c, q := who.Draw(t, "who"), queue.Draw(t, "queue")
				h.do(func(tx *broker.Tx) error { return tx.Unsubscribe(consumers[c], []byte(q)) })
				s := m.subs[c]
				s.queues = slices.DeleteFunc(s.queues, func(have string) bool { return have == q })
			},
			"ready": func(t *rapid.T) {
				c := who.Draw(t, "who")
				h.do(func(tx *broker.Tx) error { return tx.Ready(consumers[c], 1) })
				m.ready(m.subs[c])
				m.settle()
			},
			"time passes": func(t *rapid.T) {
				m.expire(h.now.Add(rapid.Int64Range(1, 40).Draw(t, "ms")))
			},
			"restart": func(t *rapid.T) {
				check()
				h.restart()
				attach()
			},
			"": func(*rapid.T) { check() },
		})
	})
}
