package dump

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// dumper is one dump under way. While the pipeline runs, it belongs to the goroutine that makes
// records.
type dumper struct {
	Options
	src     Source
	control content.Control
	flush   content.Flush
	report  Report
	check   checker // of all records so far
	ids     uint64  // records of unique pushes

	queues  []*content.Queue // in order of identity; those without a name are not dumped
	span    storage.QueueRange
	uniques map[content.UniqueID]content.Unique // ids of packets
	windows map[uint32][]content.Unique         // that are not over, by queue
	shares  map[uint32][]content.Share          // what those of a queue have of their own
	states  []state                             // in order of identity

	queue *content.Queue   // whose packets come
	later []*content.Queue // those after it
	hash  *content.Head    // whose fields are wanted; nil: none
	begun bool             // its record is made

	current packet                                           // used again for each one
	stateOf func(identity uint64) (*content.Delivery, error) // reads a delivery state

	block *block
	next  func() (*block, error) // hands the block on, and returns an empty one
}

// state stands for a delivery state.
type state struct {
	identity uint64
	seq      uint64 // of the packet that has it; 0: none yet
}

// packet is one on its way from the folder to its record.
type packet struct {
	id content.PacketID
	content.Packet
	err error // why it cannot be read
}

func (p *packet) identity() uint64 { return cmp.Or(p.Identity, p.id.Seq) }

// String names the packet in findings and errors.
func (p *packet) String() string { return "packet " + p.id.String() }

var errEnough = errors.New("the dump has as many packets as were asked for")

// prepare reads what must be known before the first record is made, and widens the marks of a
// salvage until they hold all that it found.
func (d *dumper) prepare(m *content.Marks) error {
	if err := CheckPatterns(d.Queues); err != nil {
		return err
	}
	d.uniques, d.windows = make(map[content.UniqueID]content.Unique), make(map[uint32][]content.Unique)
	d.shares = make(map[uint32][]content.Share)
	v := storage.Visitor{Queue: d.readQueue, Share: d.readShare, Unique: d.readUnique, Wrong: d.wrong, State: func(s *content.Delivery, _ content.Stored, damage error) error {
		return d.readState(m, s, damage)
	}}
	if d.Salvage {
		d.salvagePass(&v, m)
	}
	err := d.src.Walk(v)
	d.queue, d.later = &content.Queue{}, d.queues
	if *m != d.control.Marks && d.control.Epoch != 0 {
		d.report.Add(storage.FindingControl, "control record", "the dump has wider marks, because the folder holds numbers that were never handed out: "+
			"sequences are between %d and %d, and not %d and %d", m.LowSeq, m.NextSeq, d.control.LowSeq, d.control.NextSeq)
	}
	return err
}

// wants says whether what has a name is to be dumped.
func (d *dumper) wants(name []byte) bool {
	return Match(d.Queues, name) && (d.May == nil || d.May(name))
}

// readQueue notes whether a queue is to be dumped.
func (d *dumper) readQueue(q content.Queue) error {
	if d.flush.DropsQueue(&q) || q.Expired(d.Now) || !d.wants(q.Name) {
		q = content.Queue{ID: q.ID}
	} else {
		q.Name, q.Settings = append([]byte{}, q.Name...), q.Settings.Clone()
		d.span = storage.QueueRange{First: cmp.Or(d.span.First, q.ID), Last: q.ID}
	}
	d.queues = append(d.queues, &q)
	return nil
}

// readUnique reads the id of a unique push. A salvage leaves out those that cannot be loaded.
func (d *dumper) readUnique(u *content.Unique) error {
	d.ids++
	switch {
	case len(u.ID) > content.MaxUnique:
		return d.leaveOut(storage.FindingRecord, u.String(), fmt.Errorf("it has an id of %d bytes, at most %d", len(u.ID), content.MaxUnique))
	case u.Until == 0:
		d.uniques[u.UniqueID] = content.Unique{ID: bytes.Clone(u.ID), UntilClaim: u.UntilClaim}
	case !u.Expired(d.Now):
		d.windows[u.Queue] = append(d.windows[u.Queue], content.Unique{UniqueID: u.UniqueID, ID: bytes.Clone(u.ID), Until: u.Until})
	}
	return nil
}

// readShare reads what a share has of its own.
func (d *dumper) readShare(s *content.Share) error {
	d.shares[s.Queue] = append(d.shares[s.Queue], *s)
	return nil
}

// readState notes that a packet has a delivery state.
func (d *dumper) readState(m *content.Marks, s *content.Delivery, damage error) error {
	if damage != nil {
		return d.leaveOut(storage.FindingRecord, storage.StateKey(s.Identity), damage)
	}
	d.states = append(d.states, state{identity: s.Identity})
	if d.Salvage {
		widen(m, max(s.Identity, s.Token))
	}
	return nil
}

// all makes all records but the end.
func (d *dumper) all(m content.Marks) error {
	if _, err := d.put(headerRecord(m, d.Payload), storage.FindingControl, "control record"); err != nil {
		return err
	}
	err := d.allPackets()
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return err
	case d.Limit > 0:
		d.report.OmittedKeys = int64(d.control.Keys - d.ids)
		return nil
	}
	return d.src.Walk(storage.Visitor{Whole: true, Wrong: d.wrong, Item: d.item})
}

// allPackets makes the records of all queues and packets that are wanted.
func (d *dumper) allPackets() (err error) {
	read, done := d.src.ReadDeliveries()
	defer done()
	d.stateOf = read
	v := storage.Visitor{Whole: true, Wrong: d.wrong, Packet: d.packet}
	if len(d.Queues) > 0 { // else also the packets whose queue has lost its definition
		v.Range = d.span
	}
	if len(d.Queues) == 0 || d.span.Last > 0 {
		err = d.src.Walk(v)
	}
	if err == nil {
		err = d.queuesUpTo(math.MaxUint32)
	}
	return err
}

// packet takes one packet of the folder.
func (d *dumper) packet(id content.PacketID, _ *content.Meta, rec []byte, damage error) error {
	if err := d.queuesUpTo(id.Queue); err != nil {
		return err
	}
	known := d.queue.ID == id.Queue
	if known && d.queue.Name == nil || !known && len(d.Queues) > 0 { // one that is gone has no name to ask for
		return nil
	}
	p := &d.current
	*p = packet{id: id, err: damage}
	if rec != nil {
		p.err = content.DecodeRecord(bytes.Clone(rec), &p.Packet)
	}
	if !known {
		if wanted, err := d.nameless(p); !wanted {
			return err
		}
	}
	return d.putPacket(p)
}

// nameless makes the record of a queue that has lost its definition. It may have ended when only
// expired packets were left, which a start leaves to the database.
func (d *dumper) nameless(p *packet) (wanted bool, err error) {
	switch {
	case p.err == nil && p.Expired(d.Now):
		d.report.Expired++
		return false, nil
	case !d.Salvage:
		return false, fmt.Errorf("%w: %v belongs to a queue without a definition", storage.ErrDamaged, p)
	}
	q := &content.Queue{ID: p.id.Queue, Name: d.lostName(p.id.Queue)}
	d.report.Add(storage.FindingQueue, storage.QueueKey(q.ID), "its definition is lost: its packets are dumped under the name %q", q.Name)
	err = d.putQueue(q)
	return err == nil, err
}

// queuesUpTo makes the records of all queues up to one, so that also queues without packets stand
// in order.
func (d *dumper) queuesUpTo(id uint32) error {
	for len(d.later) > 0 && d.later[0].ID <= id {
		q := d.later[0]
		d.later = d.later[1:]
		if err := d.putQueue(q); err != nil {
			return err
		}
	}
	return nil
}

// putQueue makes the records of a queue, its shares and its windows, if it is to be dumped.
func (d *dumper) putQueue(q *content.Queue) error {
	if d.queue = q; q.Name == nil {
		return nil
	}
	what := storage.QueueKey(q.ID)
	if _, again := d.check.names[content.FullName(q.Database, q.Name)]; again && d.Salvage {
		name := d.lostName(q.ID)
		d.report.Add(storage.FindingQueue, what, "it has the name %q, and so has another queue: it is dumped as %q", q.Name, name)
		q.Name = name
	}
	if ok, err := d.put(queueRecord(q), storage.FindingQueue, what); !ok || err != nil {
		return err
	}
	for _, s := range d.shares[q.ID] {
		if s.Empty() || q.Settings == nil { // where there are no settings a rest ends
			continue
		}
		if _, err := d.put(shareRecord(&s), storage.FindingRecord, s.ShareID); err != nil {
			return err
		}
	}
	for _, u := range d.windows[q.ID] {
		if _, err := d.put(windowRecord(&u), storage.FindingRecord, u.UniqueID); err != nil {
			return err
		}
	}
	return nil
}

// state finds the delivery state of a packet, nil if it has none.
func (d *dumper) state(p *packet) *state {
	at, there := slices.BinarySearchFunc(d.states, p.identity(), func(s state, identity uint64) int { return cmp.Compare(s.identity, identity) })
	if !there {
		return nil
	}
	return &d.states[at]
}

// putPacket makes the record of a packet.
func (d *dumper) putPacket(p *packet) error {
	if d.Limit > 0 && d.check.Packets == d.Limit {
		return errEnough
	}
	tried, err := d.tried(p)
	switch {
	case err != nil:
		return err
	case p.err == nil && p.Expired(d.Now) && !tried.Leased(d.Now):
		d.report.Expired++
		return nil
	case p.err == nil && tried != nil:
		if s := d.state(p); s.seq == 0 {
			s.seq = p.id.Seq
		} else if p.err = d.sameIdentity(p, s); p.err == nil {
			tried = nil
		}
	}
	if p.err != nil {
		d.report.Lost++
		return d.leaveOut(storage.FindingRecord, p.String(), p.err)
	}
	if unique, ok := d.uniques[content.UniqueID{Queue: p.id.Queue, Identity: p.identity()}]; ok {
		p.Unique, p.UntilClaim = unique.ID, unique.UntilClaim
	}
	r := packetRecord(d.queue.Name, p.id, &p.Packet, tried, d.Now)
	if d.Salvage && (tried != nil || p.Identity != 0) { // then it can be left out
		if err := d.check.parts(r); err != nil {
			d.report.Add(storage.FindingRecord, storage.StateKey(p.identity()), "it is left out: %v", err)
			p.Identity = 0
			r = packetRecord(d.queue.Name, p.id, &p.Packet, nil, d.Now)
		}
	}
	ok, err := d.put(r, storage.FindingRecord, p)
	if !ok {
		d.report.Lost++
	}
	return err
}

// tried reads the delivery state of a packet, nil if it has none.
func (d *dumper) tried(p *packet) (*Delivery, error) {
	if p.err != nil || d.state(p) == nil {
		return nil, nil
	}
	s, err := d.stateOf(p.identity())
	if err != nil {
		return nil, d.leaveOut(storage.FindingRecord, storage.StateKey(p.identity()), err)
	}
	own := &Delivery{Delivery: *s}
	if at, there := slices.BinarySearchFunc(d.queues, s.Origin, func(q *content.Queue, id uint32) int { return cmp.Compare(q.ID, id) }); there {
		own.OriginName = d.queues[at].Name
	}
	return own, nil
}

// sameIdentity gives a packet an identity of its own where another one has its delivery state: a
// folder into which both states were loaded would not start, as it counts one too many.
func (d *dumper) sameIdentity(p *packet, s *state) error {
	what := fmt.Errorf("it and another packet have the identity %d", s.identity)
	if !d.Salvage {
		return what
	}
	d.report.Add(storage.FindingOwner, p.String(), "%v: one of them loses its delivery state", what)
	if p.Identity != 0 {
		p.Identity = 0
	} else { // its sequence is the identity, so the other one's is free
		p.Identity = s.seq
	}
	return nil
}

// item makes the record of a string or field that can be reached. Before the first field of a hash
// it makes the record of the hash: one without fields has none.
func (d *dumper) item(v content.ValueID, h *content.Head, f *content.Field, damage error) error {
	switch {
	case h != nil:
		d.hash, d.begun = nil, false
		if h.Expired(d.Now) || d.flush.Drops(h) || !d.wants(h.Name) {
			return nil
		}
	case f != nil && (d.hash == nil || d.hash.ID != f.Hash):
		return nil
	}
	switch {
	case damage != nil:
		d.report.LostKeys++
		return d.leaveOut(storage.FindingRecord, v.String(), damage)
	case h != nil && h.Kind == content.Hash:
		d.hash = &content.Head{ID: h.ID, Kind: h.Kind, Database: h.Database, Name: bytes.Clone(h.Name), Expiry: h.Expiry}
		return nil
	case h != nil:
		h.Name, h.Value = bytes.Clone(h.Name), bytes.Clone(h.Value)
		_, err := d.putKey(headRecord(h), v)
		return err
	case !d.begun:
		ok, err := d.putKey(headRecord(d.hash), content.ValueID{ID: d.hash.ID})
		if d.begun = ok; !ok || err != nil {
			d.hash = nil
			return err
		}
	}
	f.Name, f.Value = bytes.Clone(f.Name), bytes.Clone(f.Value)
	_, err := d.putKey(fieldRecord(d.hash.Name, f), v)
	return err
}

func (d *dumper) putKey(r Record, v content.ValueID) (ok bool, err error) {
	if ok, err = d.put(r, storage.FindingRecord, v); !ok {
		d.report.LostKeys++
	}
	return ok, err
}
