package sim

import (
	"errors"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/fuzz/model"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/resp"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// protocol is the Redis protocol, with sessions that are seen.
type protocol struct {
	*resp.Protocol
	w *world
}

func (p protocol) Open(peer *netproto.Peer) netproto.Session {
	return &session{Session: p.Protocol.Open(peer), peer: peer, w: p.w, c: p.w.clients[peer.Remote().String()]}
}

// watched is a session that is seen.
type watched interface {
	see(stop netproto.Stop)
	client() *client
}

func (s *session) client() *client { return s.c }

// session is a session. The model carries out what it has carried out, in the same order.
type session struct {
	netproto.Session
	peer *netproto.Peer
	w    *world
	c    *client
	from int // what it has replied until there was seen
}

func (s *session) Serve(tx *broker.Tx, buf []byte) (n int, stop netproto.Stop, err error) {
	s.w.tailAll(tx)
	s.w.serving, s.from = s, len(s.peer.Out)
	n, stop, err = s.Session.Serve(tx, buf)
	s.w.serving = nil
	s.see(stop)
	if err != nil {
		s.w.note("%s ends: %v", s.c.name, err)
	}
	return n, stop, err
}

// see has the model carry out what the session has carried out since it was seen last.
func (s *session) see(stop netproto.Stop) {
	out := s.peer.Out[s.from:]
	s.from = len(s.peer.Out)
	s.w.served(s.c, out, stop)
}

// Again is called while another session is served, whose changes come first, or between two.
func (s *session) Again(tx *broker.Tx, queue []byte) {
	if other := s.w.serving; other != nil {
		other.see(netproto.More)
	}
	from, before := len(s.peer.Out), tx.Made()
	s.Session.(netproto.Waiter).Again(tx, queue)
	s.w.nested += tx.Made() - before
	s.w.again(s.c, queue, s.peer.Out[from:])
	if s.w.serving == s { // its own request has waited for what it has brought
		s.from = len(s.peer.Out)
	}
}

func (s *session) Close(tx *broker.Tx) {
	s.w.model.Gone(s.c.name)
	s.w.closed = s.w.turns
	s.Session.(netproto.Closer).Close(tx)
}

// store is a store of which is seen when a turn begins, what is swept, and with what a batch comes.
type store struct {
	daemon.Store
	w *world
}

// Space begins a turn of the machine, at the moment that the loop has asked for before.
func (s store) Space() storage.Space {
	space, w := s.Store.Space(), s.w
	room := model.Room(space.Level)
	if w.stuck {
		room = model.Stuck
	}
	w.turnBegan = w.turnSteady - w.stood
	w.model.At(w.turnAt, w.turnBegan, room)
	return space
}

// Some shows the machine what may have expired before the start.
func (s store) Some(from content.PacketID, n int, fn func(content.PacketID, *content.Meta)) (content.PacketID, bool, error) {
	s.w.Say("%d packets from %v on are looked at", n, from)
	return s.Store.Some(from, n, func(id content.PacketID, m *content.Meta) {
		fn(id, m)
		identity := id.Seq
		if m.Identity != 0 {
			identity = m.Identity
		}
		s.w.model.Swept(int64(identity - content.FirstSeq))
	})
}

// Apply notes what the model is with the batch: what a start must show that has it.
func (s store) Apply(b *broker.Batch) error {
	w := s.w
	next := w.s.Control().Batch + 1
	b.Each(func(op content.Op) {
		if op.Kind == content.OpPutQueue { // its shares may come before it
			w.named[op.Queue.ID] = model.Key(op.Queue.Database, string(op.Queue.Name))
		}
	})
	b.Each(w.learn)
	if what := w.model.Unkept(); what != "" && !w.dead && w.loose == nil {
		w.Fatalf("batch %d is written with %s wrong\nThe model has\n%s", next, what, w.model.Dump())
	}
	w.come[next] = w.model.Clone()
	if planted() != "" { // which may make two batches of it
		w.come[next+1] = w.come[next]
	}
	for _, text := range w.model.Strings() {
		w.drawn[text] = true
	}
	changes := w.model.Changes()
	err := s.Store.Apply(b)
	w.stuck = errors.Is(err, broker.ErrDiskFull)
	if w.Say("batch %d: %v", next, err); err != nil {
		w.note("batch %d: %v", next, err)
	}
	if err == nil {
		last := w.s.Control().Batch
		if !b.Empty() {
			last = max(last, next) // it was answered, whether or not a mutant has written it
		}
		w.applied(last, changes)
	}
	return err
}

// learn has the model learn which windows that are over a batch deletes. They go with their queue.
func (w *world) learn(op content.Op) {
	switch op.Kind {
	case content.OpPutQueue:
		name := model.Key(op.Queue.Database, string(op.Queue.Name))
		w.defined[name] = op.Queue.ID
		w.model.Kept(name, op.Queue.Due, op.Queue.SharesFrom)
	case content.OpPutShare:
		w.model.KeptShare(w.named[op.Share.Queue], string(op.Share.Name), op.Share.Due, op.Share.HeldUntil)
	case content.OpDeleteQueue:
		for name, id := range w.defined {
			if id == op.Queue.ID {
				w.model.Undefined(name)
			}
		}
	case content.OpDeleteUnique:
		w.model.Forgotten(int64(op.Unique.Identity - content.FirstSeq))
	}
}
