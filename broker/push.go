package broker

import (
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// PushRequest is a packet to push.
type PushRequest struct {
	Queue    []byte
	Priority uint32        // 1 is best; 0 is never selected (pinpriq document, section push)
	TTL      time.Duration // 0 never expires; cut to whole milliseconds, at least one
	Key      []byte        // nil: belongs to no key group; an empty key is a key like any other
	Payload  []byte
	Delay    int64       // in milliseconds: it is not selected before; 0 is none, see Replace
	At       int64       // the same as a moment in Unix milliseconds; one that is past is none
	Tags     []PacketTag // sorted by name, no name twice; at most MaxTags
	Producer string      // at most MaxConsumer bytes
	Lease    int64       // of a claim that asks for none, in milliseconds; 0: as the queue says
	Meta     []byte      // what goes beside the payload, at most MaxMeta bytes
	// Unique is an id of the client's own, of at most MaxUnique bytes: the packet is pushed only if no
	// other packet of the queue has it. Empty: none. Window is for how long after its push a packet
	// has it, in milliseconds; 0: until it is taken, acknowledged, deleted or dead, or expires.
	// UntilClaim frees the id when the packet is claimed, too, for good. It goes with no Window.
	Unique     []byte
	Window     int64
	UntilClaim bool
	// Replace gives the packet that has the id what this push brings, if it is ready or delayed. It
	// keeps its place, key, id, times of push and claims; and its moment if Delay and At are negative.
	Replace bool
	Tell    bool // see PushTold
	// Block says that the push waits if the queue is full: nothing is dropped for it.
	Block bool
}

// CheckSize returns ErrTooLarge if the packet of a push is too large.
func (tx *Tx) CheckSize(r PushRequest) error {
	n := len(r.Queue) + len(r.Key) + len(r.Payload) + len(r.Meta) + content.ExtraBytes(&Packet{Tags: r.Tags, Producer: r.Producer, Unique: r.Unique, Lease: r.Lease})
	if n > tx.m.maxRecord {
		return fmt.Errorf("%w: queue name, key, payload, meta, tags, producer, lease and unique id have %d bytes together, the limit is %d", ErrTooLarge, n, tx.m.maxRecord)
	}
	return nil
}

// PushAll pushes packets that differ in their payloads only: all of them, or none. It returns the
// id of the first; the others have those that follow it. The pushes are not unique.
func (tx *Tx) PushAll(r PushRequest, payloads [][]byte) (first ID, err error) {
	for _, r.Payload = range payloads {
		if err := tx.CheckSize(r); err != nil {
			return 0, err
		}
	}
	first = idOf(tx.m.marks.NextSeq)
	_, err = tx.push(&r, payloads)
	return first, err
}

// push adds the packets of a push to its queue, which is made if it is not known.
func (tx *Tx) push(r *PushRequest, payloads [][]byte) (q *queue, err error) {
	if q, err = tx.openToPush(r.Queue, r.load(payloads), r.Tags); err != nil {
		return nil, err
	}
	p := tx.packet(r)
	for _, p.Payload = range payloads {
		tx.m.insert(q, r.Priority, Newest, &p, Ready, p.NotBefore)
	}
	return q, nil
}

// load returns the load of a push with payloads.
func (r *PushRequest) load(payloads [][]byte) load {
	l := load{packets: len(payloads), priority: r.Priority, key: r.Key}
	for _, payload := range payloads {
		l.bytes += int64(len(r.Key) + len(payload) + len(r.Meta))
		l.addWidth(content.IsWide(len(r.Key), len(payload)))
	}
	if r.Block {
		l.priority = 0
	}
	return l
}

// packet returns the packet of a push, without its payload.
func (tx *Tx) packet(r *PushRequest) Packet {
	p := Packet{Key: r.Key, EnqueuedAt: tx.now, Tags: r.Tags, Producer: r.Producer, Lease: r.Lease, Meta: r.Meta}
	if r.TTL > 0 {
		p.Expiry = tx.now + max(1, r.TTL.Milliseconds())
	}
	if delay := max(r.Delay, r.At-tx.now); delay > 0 {
		p.NotBefore = tx.now + delay
	}
	if r.Window == 0 {
		p.Unique, p.UntilClaim = r.Unique, r.UntilClaim
	}
	return p
}

// insert puts p at an end of a priority: into the open batch, the cache and the index. The queue
// has admitted it, so the index has room. The state is as of index.Entry.
func (m *Machine) insert(q *queue, priority uint32, end End, p *Packet, s State, until int64) index.ID {
	setHash(p)
	id := content.PacketID{Queue: q.id, Priority: priority, Seq: m.nextSeq(end)}
	op := m.open.ops.Put(id, p)
	m.open.puts.add(id, op)
	e := m.entry(q, id, p, op)
	e.State, e.Until = s, until
	ix := m.ix.Push(e, m.tx.now)
	m.putUnique(q, id.Seq, p.Unique, p.UntilClaim)
	m.count(q, &q.counters.Pushed, &m.totals.Pushed, 1)
	m.tail(q, index.Packet{Identity: id.Seq, Priority: priority, Size: e.Size}, EventPushed)
	m.changed(q)
	return ix
}

// setHash gives a packet without a key the hash of its payload, which its record holds.
func setHash(p *Packet) {
	if p.Key == nil {
		p.Hash = content.ValueHash(p.Payload)
	}
}

// entry is the index entry of a packet that op puts. Its record is in the cache from then on.
func (m *Machine) entry(q *queue, id content.PacketID, p *Packet, op int) index.Entry {
	return index.Entry{
		Queue:    q.ix,
		Tags:     m.tagBytes(p.Tags),
		Wide:     content.IsWide(len(p.Key), len(p.Payload)),
		Priority: id.Priority,
		Seq:      id.Seq,
		Key:      p.Key,
		Hash:     p.Hash,
		Size:     uint32(len(p.Key) + len(p.Payload) + len(p.Meta)),
		TagBytes: uint32(content.ExtraBytes(p)),
		Identity: p.Identity,
		Unique:   p.Unique, UntilClaim: p.UntilClaim,
		Expiry: p.Expiry,
		Flags:  content.Flags(p.Expiry != 0, content.IsLarge(len(p.Payload))),
		Ref:    m.cache.Add(id.Seq, m.open.ops.Record(op)),
	}
}

// nextSeq returns a new sequence at an end: past all that any packet has.
func (m *Machine) nextSeq(end End) uint64 {
	if end == Oldest {
		m.marks.LowSeq--
		return m.marks.LowSeq + 1
	}
	m.marks.NextSeq++
	return m.marks.NextSeq - 1
}

// beginWindow begins the window of a packet that was pushed.
func (tx *Tx) beginWindow(q *queue, unique []byte, until int64, id ID) {
	if tx.m.ix.AddWindow(q.ix, unique, id.identity(), until) {
		tx.m.open.ops.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: q.id, Identity: id.identity()}, ID: unique, Until: until})
	}
}
