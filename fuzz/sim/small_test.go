package sim

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/fuzz/model"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/inmemory"
)

// door is a small protocol: one in which nobody waits for a reply of its own.
type door struct {
	netproto.Protocol
	w      *world
	server *netproto.Server

	draw    func(w *world) []string
	first   []string // what a connection that begins so is closed for
	request func(words []string) []byte
	// reply reads the first reply; n is 0 if it is not whole.
	reply func(out []byte) (got any, n int)
	// do has the model carry out a request. ends says that the connection does behind the reply.
	do func(client string, words []string) (want any, ends bool)
	// counts says that some requests have no reply: how many were carried out is counted.
	counts bool
}

// isSmall says that in a seed clients speak the small protocols, too.
func (w *world) isSmall() bool { return w.Seed%4 == 3 }

// openDoors opens the servers of the small protocols on the loop.
func (w *world) openDoors() {
	w.doors = []*door{w.pinpriq(), w.barbershop()}
	for _, d := range w.doors {
		d.w = w
		d.server = netproto.NewServer(nil, netproto.Config{Protocol: d, Loop: w.loop.Loop})
	}
}

// enter makes a client of a small protocol.
func (w *world) enter(d *door) *client {
	w.ports++
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), w.ports)
	c := &client{name: at.String(), door: d, fresh: true}
	w.clients[c.name] = c
	var err error
	c.wire, err = inmemory.Connect(d.server, at)
	w.must("a connection", err)
	w.note("%s speaks %s", c.name, d.Name())
	return c
}

// Open implements netproto.Protocol.
func (d *door) Open(peer *netproto.Peer) netproto.Session {
	return &visit{Session: d.Protocol.Open(peer), peer: peer, door: d, w: d.w, c: d.w.clients[peer.Remote().String()]}
}

// visit is a session of a small protocol. The model carries out what it has carried out, in the
// same order.
type visit struct {
	netproto.Session
	peer *netproto.Peer
	door *door
	w    *world
	c    *client
	tx   *broker.Tx // while it serves
	made int        // requests that were seen, of all that the transaction has carried out
	from int        // what it has replied until there was seen
	ends bool       // the next thing that it does is to end
	part int64      // since when it has a part of a request, on the steady clock; 0: it has none
}

func (v *visit) client() *client { return v.c }

func (v *visit) Serve(tx *broker.Tx, buf []byte) (n int, stop netproto.Stop, err error) {
	w := v.w
	w.serving, w.nested, v.tx, v.made, v.from = v, 0, tx, tx.Made(), len(v.peer.Out)
	n, stop, err = v.Session.Serve(tx, buf)
	w.serving = nil
	v.see(stop)
	switch {
	case w.dead:
		return n, stop, err
	case stop != netproto.Incomplete || n == len(buf):
		v.part = 0
	case n > 0 || v.part == 0:
		v.part = w.turnSteady
	}
	if err != nil && !v.ends { // by a request that was not carried out at all
		v.carryOut()
	}
	if (err != nil) != v.ends || len(v.peer.Out) > v.from {
		w.Fatalf("%s has replied %.200q, ends with %v, and should end: %v\nThe model has\n%s", v.c.name, v.peer.Out[v.from:], err, v.ends, w.model.Dump())
	}
	if err != nil {
		w.note("%s ends: %v", v.c.name, err)
	}
	return n, stop, err
}

// see has the model carry out what the session has carried out since it was seen last.
func (v *visit) see(netproto.Stop) {
	if v.w.dead {
		return
	}
	for v.door.counts && v.made < v.tx.Made()-v.w.nested || !v.door.counts && v.from < len(v.peer.Out) {
		v.made++
		v.carryOut()
	}
}

// carryOut has the model carry out the next request, and compares the reply.
func (v *visit) carryOut() {
	w, c := v.w, v.c
	if len(c.sent) == 0 {
		w.Fatalf("%s carries out what nobody has sent, and replies %.200q", c.name, v.peer.Out[v.from:])
	}
	words := c.sent[0]
	c.sent, c.fresh = c.sent[1:], false
	if w.model.Shown(nil); v.from < len(v.peer.Out) {
		got, _ := v.door.reply(v.peer.Out[v.from:])
		w.model.Shown(got)
	}
	want, ends := v.door.do(c.name, words)
	w.f.did[v.door.Name()+" "+words[0]]++
	if v.ends = ends; ends {
		w.f.did[v.door.Name()+" ends"]++
	}
	if v.door.counts && (want == nil || ends) {
		w.note("%s: %.60q, and ends: %v", c.name, words, ends)
		return
	}
	got, n := v.door.reply(v.peer.Out[v.from:])
	if e, is := want.(model.Err); is && n > 0 {
		got = model.Err(got.(string))
		w.f.did[v.door.Name()+" "+string(e)]++
	}
	w.note("%s: %.60q replies %.100q", c.name, words, lazy{got})
	if err := model.Same(got, want); err != nil {
		w.Fatalf("%s: %.60q: %v\nThe model has\n%s", c.name, words, err, w.model.Dump())
	}
	v.replied(words, n)
}

// replied notes a reply or a delivery, which is to come when all before it is on the disk. An error
// need not wait for that.
func (v *visit) replied(words []string, n int) {
	m := made{bytes: slices.Clone(v.peer.Out[v.from : v.from+n]), words: words, changes: v.w.model.Changes()}
	if !v.door.counts && bytes.Contains(m.bytes, []byte("ERROR")) {
		m.changes = 0
	}
	v.c.made = append(v.c.made, m)
	v.from += n
}

// Deliver is called while a session is served, whose changes come first, or between two.
func (v *visit) Deliver(packets []broker.Packet) {
	w := v.w
	if w.serving != nil {
		w.serving.see(netproto.More)
	}
	from := len(v.peer.Out)
	v.Session.(netproto.Subscriber).Deliver(packets)
	if w.dead {
		return
	}
	v.from = from
	got, n := v.door.reply(v.peer.Out[from:])
	w.note("%s gets %.100q", v.c.name, lazy{got})
	w.model.Shown(got)
	if w.sliced() && w.model.Clone().Delivered(v.c.name, got) != nil {
		w.slice(w.serving.client()) // it has brought what this one gets
	}
	if err := w.model.Delivered(v.c.name, got); err != nil {
		w.Fatalf("%s: %v\nThe model has\n%s", v.c.name, err, w.model.Dump())
	}
	w.f.did[v.door.Name()+" delivery"]++
	v.replied([]string{"a delivery"}, n)
}

// Close is the end of a connection. It must have a reason.
func (v *visit) Close(*broker.Tx) {
	w, c := v.w, v.c
	w.model.Gone(c.name)
	w.closed = w.turns
	unfinished := v.part != 0 && w.turnSteady-v.part >= netproto.DefaultFrameTimeout.Milliseconds()
	binary := c.fresh && len(c.sent) > 0 && c.sent[0][0] == "bad"
	if w.turning && !w.dead && !v.ends && !c.hungUp && !c.stalls && !unfinished && !binary {
		w.Fatalf("%s is closed, and nobody knows why", c.name)
	}
	v.ends, c.hungUp = true, true
}

// small has a client of a small protocol send something, or do something else.
func (w *world) small() {
	all := slices.DeleteFunc(w.all(), func(c *client) bool { return c.door == nil || c.hungUp })
	if len(all) < 5 {
		all = append(all, w.enter(pick(w, w.doors[0], w.doors[0], w.doors[1])))
	}
	c := pick(w, all...)
	switch n := w.r.IntN(40); {
	case n < 2:
		c.stalls = !c.stalls
		w.note("%s stalls: %v", c.name, c.stalls)
		c.wire.Stall(c.stalls)
	case n < 3:
		w.note("%s hangs up", c.name)
		c.hungUp = true
		c.wire.HangUp()
	case n < 10:
		w.besides()
	default:
		if c.fresh && len(c.sent) == 0 && w.chance(12) {
			w.send(c, [][]string{{"bad", pick(w, c.door.first...)}})
			break
		}
		var requests [][]string
		for range 1 + w.r.IntN(6) {
			requests = append(requests, c.door.draw(w))
		}
		w.send(c, requests)
	}
	for range w.r.IntN(4) {
		w.turn()
	}
}

// besides has a Redis client do something to the queues of clients of the small protocols.
func (w *world) besides() {
	redis := slices.DeleteFunc(w.all(), func(c *client) bool { return c.door != nil || c.hungUp || c == w.looker || c.db != '0' })
	if len(redis) == 0 {
		return
	}
	c, words := pick(w, redis...), []string{"QPUSH", model.Board, w.payload(), "PRIO", w.priority()}
	switch w.r.IntN(10) {
	case 0, 1:
		words = append(words, "KEY", w.item(), "TTL", w.ms())
	case 2:
		words = append(words, "KEY", w.item(), "DELAY", w.ms())
	case 3:
		words = []string{"QPUSH", pick(w, "q1", model.Board), string(bytes.Repeat([]byte{'w'}, 70_000)), "KEY", w.item()}
		w.drawn[words[2]] = true
	case 4:
		words = w.set(model.Board)
	case 5:
		words = []string{"QPAUSE", pick(w, "q1", model.Board), "UNTIL", w.moment()}
	case 6:
		words = []string{"QDROP", model.Board}
	default:
		words = []string{pick(w, "QCLAIM", "QCLAIM", "QPOP"), model.Board}
	}
	w.send(c, [][]string{words})
}
