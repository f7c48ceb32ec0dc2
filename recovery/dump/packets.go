package dump

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/holdfast-queue/holdfast/storage"
)

var errEnough = errors.New("the dump has as many packets as were asked for")

// packet is one whose record is not made yet.
type packet struct {
	id storage.PacketID
	storage.Packet
	err error // why it cannot be read
}

func (p *packet) identity() uint64 { return cmp.Or(p.Identity, p.id.Seq) }

// So many packets, or bytes of them, look for their delivery states together.
const (
	runPackets = 1024
	runBytes   = 256 << 10
)

// allPackets makes the records of queues and of what they hold.
func (d *dumper) allPackets() error {
	for _, queues := range d.ranges {
		err := d.src.Records(queues, d.packet)
		if errors.Is(err, errEnough) {
			return err
		}
		if err := d.tolerable("packets", err); err != nil {
			return err
		}
	}
	return d.queuesUpTo(1<<32 - 1)
}

// packet takes one packet of the folder.
func (d *dumper) packet(id storage.PacketID, rec []byte, damage error) error {
	if d.dropped[id.Queue] {
		return nil
	}
	p := packet{id: id, err: damage}
	if rec != nil {
		p.err = storage.DecodeRecord(bytes.Clone(rec), &p.Packet)
	}
	if p.err != nil {
		p.err = fmt.Errorf("packet %v cannot be read: %w", id, p.err)
	}
	if d.queue == nil || d.queue.ID != id.Queue {
		if wanted, err := d.begin(&p); err != nil || !wanted {
			return err
		}
	}
	d.packets = append(d.packets, p)
	if d.bytes += len(rec); len(d.packets) < runPackets && d.bytes < runBytes {
		return nil
	}
	return d.putPackets()
}

// begin makes the packet's queue the one whose record was made last. A queue without a definition
// has no name to ask for, so its packets are wanted only in a dump of all queues. It may have ended
// when only expired packets were left, which a start leaves to the database.
func (d *dumper) begin(p *packet) (wanted bool, err error) {
	if err := d.queuesUpTo(p.id.Queue); err != nil {
		return false, err
	}
	switch {
	case d.queue != nil && d.queue.ID == p.id.Queue:
		return true, nil
	case len(d.Queues) > 0:
		return false, nil
	case p.err == nil && p.Expired(d.Now):
		d.report.Expired++
		return false, nil
	case !d.Salvage:
		return false, fmt.Errorf("%w: packet %v belongs to a queue without a definition", storage.ErrDamaged, p.id)
	}
	d.report.Nameless++
	return true, d.putQueue(&storage.Queue{ID: p.id.Queue, Name: d.lostName(p.id.Queue)})
}

// queuesUpTo makes the records of all queues up to one, so that also queues without packets stand
// in order.
func (d *dumper) queuesUpTo(id uint32) error {
	if err := d.putPackets(); err != nil {
		return err
	}
	for len(d.later) > 0 && d.later[0].ID <= id {
		q := d.later[0]
		d.later = d.later[1:]
		if err := d.putQueue(q); err != nil {
			return err
		}
	}
	return nil
}

// putQueue makes the records of a queue and its windows. A salvage renames a queue whose name
// another one has, and leaves out one that no dump can have.
func (d *dumper) putQueue(q *storage.Queue) error {
	d.queue = q
	key := fmt.Sprint("queue ", q.ID)
	if _, again := d.check.names[storage.FullName(q.Database, q.Name)]; again && d.Salvage {
		name := d.lostName(q.ID)
		d.finding(storage.FindingQueue, key, "it has the name %q, and so has another queue: it is dumped as %q", q.Name, name)
		q.Name = name
	}
	switch err := d.put(queueRecord(q, d.Format)); {
	case refused(err) && d.Salvage:
		d.finding(storage.FindingQueue, key, "its definition and its packets are left out: %v", err)
		return nil
	case refused(err):
		return fmt.Errorf("%w: queue %d: %w", storage.ErrDamaged, q.ID, err)
	case err != nil:
		return err
	}
	at := sort.Search(len(d.windows), func(i int) bool { return d.windows[i].Queue >= q.ID })
	for ; at < len(d.windows) && d.windows[at].Queue == q.ID; at++ {
		u := &d.windows[at]
		switch err := d.put(windowRecord(u)); {
		case refused(err) && d.Salvage:
			d.finding(storage.FindingRecord, u.String(), "it is left out: %v", err)
		case refused(err):
			return fmt.Errorf("%w: %v: %w", storage.ErrDamaged, u.UniqueID, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// putPackets makes the records of the packets that wait.
func (d *dumper) putPackets() error {
	tried, err := d.tried()
	for i := range d.packets {
		if err == nil {
			p := &d.packets[i]
			err = d.putPacket(p, tried[p.identity()])
		}
	}
	clear(d.packets)
	d.packets, d.bytes = d.packets[:0], 0
	return err
}

// putPacket makes the record of a packet; tried is nil if nothing was tried with it.
func (d *dumper) putPacket(p *packet, tried *Delivery) error {
	if d.Limit > 0 && d.check.packets == uint64(d.Limit) {
		return errEnough
	}
	if p.err != nil {
		return d.lose(p)
	}
	if p.Expired(d.Now) && !tried.Leased(d.Now) {
		d.report.Expired++
		return nil
	}
	if unique, ok := d.uniques[storage.UniqueID{Queue: p.id.Queue, Identity: p.identity()}]; ok {
		p.Unique = unique // of an older version it is in the record
	}
	if tried != nil && d.met(p) {
		tried = nil
	}
	if p.err != nil {
		return d.lose(p)
	}
	err := d.put(packetRecord(d.queue.Name, p.id, &p.Packet, tried, d.Now))
	if refused(err) && d.Salvage && (tried != nil || p.Identity != 0) { // it may be because of that
		identity, why := p.identity(), err
		p.Identity = 0
		if err = d.put(packetRecord(d.queue.Name, p.id, &p.Packet, nil, d.Now)); err == nil {
			d.finding(storage.FindingRecord, fmt.Sprint("delivery state ", identity), "it is left out: %v", why)
		}
	}
	if refused(err) {
		p.err = fmt.Errorf("packet %v: %w", p.id, err)
		return d.lose(p)
	}
	return err
}

// lose leaves a packet out of a salvage, and ends any other dump.
func (d *dumper) lose(p *packet) error {
	if !d.Salvage {
		return fmt.Errorf("%w: %w", storage.ErrDamaged, p.err)
	}
	if d.report.Lost++; len(d.report.Unreadable) < maxUnreadable {
		d.report.Unreadable = append(d.report.Unreadable, Unreadable{p.id, p.err})
	}
	return nil
}

// met notes that a packet with a delivery state was met, and reports whether another one with its
// identity was met before. The second gets an identity of its own: a folder into which both states
// were loaded would not start, as it counts one too many.
func (d *dumper) met(p *packet) bool {
	at, _ := slices.BinarySearch(d.delivered, p.identity())
	if d.matched[at] == 0 {
		d.matched[at] = p.id.Seq
		return false
	}
	what := fmt.Errorf("packet %v and another one have the identity %d", p.id, p.identity())
	if p.Identity != 0 {
		p.Identity = 0
	} else { // its sequence is the identity, so the other one's is free
		p.Identity = d.matched[at]
	}
	if d.Salvage {
		d.finding(storage.FindingOwner, p.id.String(), "%v: one of them loses its delivery state", what)
	} else {
		p.err = what
	}
	return true
}

// tried reads the delivery states of the packets that wait, by their identities.
func (d *dumper) tried() (map[uint64]*Delivery, error) {
	var identities []uint64
	for i := range d.packets {
		if _, there := slices.BinarySearch(d.delivered, d.packets[i].identity()); there && d.packets[i].err == nil {
			identities = append(identities, d.packets[i].identity())
		}
	}
	if len(identities) == 0 {
		return nil, nil
	}
	slices.Sort(identities)
	identities = slices.Compact(identities)
	states := make(map[uint64]*Delivery)
	err := d.src.ReadDeliveries(identities, func(i int, state *storage.Delivery) error {
		own := &Delivery{Delivery: *state}
		if at, there := slices.BinarySearchFunc(d.queues, state.Origin, func(q *storage.Queue, id uint32) int { return cmp.Compare(q.ID, id) }); there {
			own.OriginName = d.queues[at].Name
		}
		states[identities[i]] = own
		return nil
	})
	if err != nil && d.Salvage {
		d.finding(storage.FindingRecord, "delivery states", "some are left out: %v", err)
		return nil, nil
	}
	return states, err
}

// readDeliveries notes which packets have a delivery state. A salvage leaves out those that cannot
// be read, and widens the marks until they hold the others.
func (d *dumper) readDeliveries(m *storage.Marks) error {
	var tally storage.Tally
	unread := uint64(0)
	err := d.src.Deliveries(func(state *storage.Delivery, damage error) error {
		switch {
		case damage == nil:
			tally.AddDelivery(state.Identity)
			d.delivered = append(d.delivered, state.Identity)
			if d.Salvage {
				widen(m, max(state.Identity, state.Token))
			}
		case d.Salvage:
			unread++
			d.finding(storage.FindingRecord, fmt.Sprint("delivery state ", state.Identity), "it is left out: %v", damage)
		default:
			return fmt.Errorf("%w: the delivery state of packet %d: %w", storage.ErrDamaged, state.Identity, damage)
		}
		return nil
	})
	d.matched = make([]uint64, len(d.delivered))
	d.mismatch(d.control.CheckDeliveries(tally, unread))
	return d.tolerable("delivery states", err)
}
