package fuzz

import (
	"cmp"
	"slices"
)

// The model says what a server must send. It is slow and simple: packets in slices, and a search
// for whatever comes next. Its rules are those of netproto/pinpriq/PROTOCOL.md.

// modelPacket is a packet in a queue. seq rises with each push.
type modelPacket struct {
	seq          int
	prio         uint8
	key, payload string
	expiry       int64 // 0 for ever
}

// modelConn is a connection: its readiness, and what it must have been sent.
type modelConn struct {
	ready      int
	since      int // when it became ready, or got its latest delivery
	subscribed map[string]bool
	sent       [][]modelPacket // replies and deliveries, in order; an empty one is 00 00
}

// model is the whole server.
type model struct {
	now    int64
	seq    int
	queues map[string][]modelPacket
	conns  []*modelConn
	clock  int // of since
}

func newModel(conns int) *model {
	m := &model{queues: map[string][]modelPacket{}}
	m.connect(conns)
	return m
}

// connect starts over with new connections. The packets stay.
func (m *model) connect(conns int) {
	m.conns = nil
	for range conns {
		m.conns = append(m.conns, &modelConn{subscribed: map[string]bool{}})
	}
}

// expire drops the expired packets.
func (m *model) expire() {
	for name, q := range m.queues {
		m.queues[name] = slices.DeleteFunc(q, func(p modelPacket) bool { return p.expiry != 0 && p.expiry <= m.now })
	}
}

func (m *model) push(queue string, p modelPacket) {
	m.expire()
	m.seq++
	p.seq = m.seq
	m.queues[queue] = append(m.queues[queue], p)
	for m.best(queue) != nil {
		c := m.first(queue)
		if c < 0 {
			return
		}
		m.deliver(c, queue)
	}
}

func (m *model) pop(c int, queue string) {
	m.expire()
	m.conns[c].sent = append(m.conns[c].sent, m.popGroup(queue))
}

func (m *model) subscribe(c int, queue string) {
	m.expire()
	if m.conns[c].subscribed[queue] {
		return
	}
	m.conns[c].subscribed[queue] = true
	m.fillConsumer(c)
}

func (m *model) unsubscribe(c int, queue string) {
	delete(m.conns[c].subscribed, queue)
}

func (m *model) ready(c int) {
	m.expire()
	if m.conns[c].ready++; m.conns[c].ready == 1 {
		m.wait(c)
	}
	m.fillConsumer(c)
}

// fillConsumer gives a connection what its readiness allows: the best priority among its queues,
// then the newest.
func (m *model) fillConsumer(c int) {
	for m.conns[c].ready > 0 {
		var best *modelPacket
		from := ""
		for queue := range m.conns[c].subscribed {
			if p := m.best(queue); p != nil && (best == nil || p.prio < best.prio || p.prio == best.prio && p.seq > best.seq) {
				best, from = p, queue
			}
		}
		if best == nil {
			return
		}
		m.deliver(c, from)
	}
}

// deliver sends a connection the next packet of a queue and moves it to the end of the wait list.
func (m *model) deliver(c int, queue string) {
	conn := m.conns[c]
	conn.sent = append(conn.sent, m.popGroup(queue))
	conn.ready--
	m.wait(c)
}

// wait puts a connection at the end of the wait list.
func (m *model) wait(c int) {
	m.clock++
	m.conns[c].since = m.clock
}

// first is the connection that the next packet of a queue goes to; -1 if to none.
func (m *model) first(queue string) int {
	first := -1
	for c, conn := range m.conns {
		if conn.ready > 0 && conn.subscribed[queue] && (first < 0 || conn.since < m.conns[first].since) {
			first = c
		}
	}
	return first
}

// best is the packet of a queue that would be selected; nil if none.
func (m *model) best(queue string) *modelPacket {
	var best *modelPacket
	for i := range m.queues[queue] {
		p := &m.queues[queue][i]
		if p.prio > 0 && (best == nil || p.prio < best.prio || p.prio == best.prio && p.seq > best.seq) {
			best = p
		}
	}
	return best
}

// popGroup removes the selected packet and its group, and returns them in the order of a reply.
func (m *model) popGroup(queue string) []modelPacket {
	best := m.best(queue)
	if best == nil {
		return nil
	}
	selected := *best
	var group, rest []modelPacket
	for _, p := range m.queues[queue] {
		switch {
		case p.seq == selected.seq:
		case p.key == selected.key:
			group = append(group, p)
		default:
			rest = append(rest, p)
		}
	}
	m.queues[queue] = rest
	slices.SortFunc(group, func(a, b modelPacket) int {
		// Priority 0 comes last: minus one it is 255, and no other is.
		return cmp.Or(cmp.Compare(int(a.prio-1), int(b.prio-1)), cmp.Compare(b.seq, a.seq))
	})
	return append([]modelPacket{selected}, group...)
}
