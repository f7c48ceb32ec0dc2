package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-queue/holdfast/recovery/pipeline"
	"github.com/holdfast-queue/holdfast/storage"
)

// A run of packets goes through the pipeline at a time. With a limit a run is one packet, so that a
// dump can end behind any of them.
const (
	runPackets = 1024
	runBytes   = 256 << 10
)

// run is some packets and queues on their way from the folder to the dump.
type run struct {
	items []runItem
	recs  []byte // of the packets

	out             []byte // encoded
	packets, queues int64  // in out
	expired         int64
	filled          []*storage.Queue // those in out that have settings, or packets there
	lost            []Unreadable
	duplicates      []storage.Finding // packets in out that have the identity of another
	damage          error             // why the delivery states of the packets in out are left out
}

// runItem is a packet, or the record of a queue.
type runItem struct {
	queue  *storage.Queue
	packet bool
	id     storage.PacketID
	end    int   // of the packet's record in recs
	err    error // why there is no record
}

var errEnough = errors.New("the dump has as many packets as were asked for")

// packets writes all records but the first and the last.
func (d *dumper) packets(ctx context.Context) error {
	tell := time.Now()
	err := pipeline.Run(ctx, pipeline.Stages[*run]{
		New: func() *run { return &run{} },
		Read: func(_ context.Context, next func() (*run, error)) error {
			r := &runReader{dumper: d, next: next, unwritten: d.queues}
			return r.readAll()
		},
		Work: func() func(*run) {
			e := &runEncoder{dumper: d, enc: newEncoder(d.Format, d.Payload)}
			return e.encode
		},
		Deliver: func(r *run) error {
			defer r.reset()
			if err := d.writeRun(r); err != nil {
				return err
			}
			if now := time.Now(); d.Progress != nil && now.After(tell) {
				tell = now.Add(progressEvery)
				d.Progress(d.progress())
			}
			return nil
		},
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// runReader fills runs with the records of the source. It is the pipeline's first stage.
type runReader struct {
	*dumper
	next      func() (*run, error)
	run       *run
	queue     *storage.Queue   // the last one whose record was added
	unwritten []*storage.Queue // those after it
	decoded   storage.Packet   // the last one that was looked into
}

func (r *runReader) readAll() (err error) {
	if r.run, err = r.next(); err != nil {
		return err
	}
	err = r.records()
	if _, e := r.next(); err == nil { // also after an error: the last run may be all that the limit asks for
		err = e
	}
	return err
}

func (r *runReader) records() error {
	for _, queues := range r.ranges {
		err := r.src.Records(queues, r.packet)
		if err != nil && !(r.Salvage && errors.Is(err, storage.ErrDamaged)) {
			return fmt.Errorf("read packets: %w", err)
		}
	}
	return r.queuesUpTo(1<<32 - 1)
}

// packet adds one packet to the run.
func (r *runReader) packet(id storage.PacketID, rec []byte, damage error) error {
	if r.dropped[id.Queue] {
		return nil
	}
	err := checkID(id)
	switch {
	case err != nil:
	case !r.Salvage && !r.within(id):
		err = fmt.Errorf("%w: packet %v: its sequence is not between those of the next packets at the two ends, %d and %d",
			storage.ErrDamaged, id, r.control.LowSeq, r.control.NextSeq)
	case rec == nil:
		err = unreadable(id, damage)
	}
	if err != nil && !r.Salvage {
		return err
	}
	if checkID(id) == nil {
		if wanted, err := r.beginQueue(id, rec); err != nil || !wanted {
			return err
		}
	}
	if err == nil {
		r.run.recs = append(r.run.recs, rec...)
	}
	return r.add(runItem{queue: r.queue, packet: true, id: id, end: len(r.run.recs), err: err})
}

func unreadable(id storage.PacketID, err error) error {
	return fmt.Errorf("packet %v cannot be read: %w", id, err)
}

// beginQueue makes the packet's queue the one whose record was added last. A queue without a
// definition has no name to ask for, so its packets are wanted only in a dump of all queues. It may
// have ended when only expired packets were left, which a start leaves to the database.
func (r *runReader) beginQueue(id storage.PacketID, rec []byte) (wanted bool, err error) {
	if r.queue != nil && r.queue.ID == id.Queue {
		return true, nil
	}
	if err := r.queuesUpTo(id.Queue); err != nil {
		return false, err
	}
	switch {
	case r.queue != nil && r.queue.ID == id.Queue:
		return true, nil
	case len(r.Queues) > 0:
		return false, nil
	case storage.DecodeRecord(rec, &r.decoded) == nil && r.decoded.Expired(r.Now):
		r.run.expired++
		return false, nil
	case !r.Salvage:
		return false, fmt.Errorf("%w: packet %v belongs to a queue without a definition", storage.ErrDamaged, id)
	}
	r.nameless++
	r.queue = &storage.Queue{ID: id.Queue, Name: r.lostName(id.Queue)}
	return true, r.add(runItem{queue: r.queue, end: len(r.run.recs)})
}

// queuesUpTo adds the records of all queues up to one, so that also queues without packets stand in
// order.
func (r *runReader) queuesUpTo(id uint32) error {
	for len(r.unwritten) > 0 && r.unwritten[0].ID <= id {
		r.queue, r.unwritten = r.unwritten[0], r.unwritten[1:]
		if err := r.add(runItem{queue: r.queue, end: len(r.run.recs)}); err != nil {
			return err
		}
	}
	return nil
}

// add hands the run on when it is full.
func (r *runReader) add(item runItem) (err error) {
	r.run.items = append(r.run.items, item)
	if r.Limit == 0 && len(r.run.items) < runPackets && len(r.run.recs) < runBytes {
		return nil
	}
	r.run, err = r.next()
	return err
}

// runEncoder is one worker of the pipeline. What it has of the dumper does not change meanwhile.
type runEncoder struct {
	*dumper
	enc        encoder
	packet     storage.Packet // the last one
	deliveries deliveries     // of the run
}

// encode fills what the run needs to be written.
func (e *runEncoder) encode(run *run) {
	if run.damage = e.readDeliveries(run); run.damage != nil {
		e.deliveries.identities = e.deliveries.identities[:0]
	}
	from := 0
	for i := range run.items {
		item := &run.items[i]
		rec := run.recs[from:item.end]
		from = item.end
		if !item.packet {
			run.out = e.enc.queue(run.out, item.queue)
			for _, u := range e.windowsOf(item.queue.ID) {
				run.out = e.enc.window(run.out, &u)
			}
			run.queues++
			if item.queue.Settings != nil {
				run.filled = append(run.filled, item.queue)
			}
			continue
		}
		err := item.err
		var d *Delivery
		if err == nil {
			d, err = e.read(item.id, rec)
		}
		expired := err == nil && e.packet.Expired(e.Now) && !d.Leased(e.Now)
		if first := e.first(item.id, d, expired); first != 0 {
			duplicate := fmt.Errorf("packet %v and another one have the identity %d", item.id, d.Identity)
			if e.packet.Identity != 0 {
				e.packet.Identity = 0
			} else { // its sequence is the identity, so the other one's is free
				e.packet.Identity = first
			}
			if d = nil; !e.Salvage {
				err = duplicate
			}
			run.duplicates = append(run.duplicates, storage.Finding{
				Kind: storage.FindingOwner, Key: item.id.String(), What: duplicate.Error() + ": one of them loses its delivery state",
			})
		}
		switch {
		case err != nil:
			run.lost = append(run.lost, Unreadable{item.id, err})
		case expired:
			run.expired++
		default:
			run.out = e.enc.packet(run.out, item.queue, item.id, &e.packet, d, e.Now)
			run.packets++
			if n := len(run.filled); n == 0 || run.filled[n-1] != item.queue {
				run.filled = append(run.filled, item.queue)
			}
		}
	}
}

// readDeliveries reads the delivery states of a run.
func (e *runEncoder) readDeliveries(run *run) error {
	if len(e.dumper.delivered) == 0 {
		return nil
	}
	identities, from := e.deliveries.identities[:0], 0
	for i := range run.items {
		item := &run.items[i]
		rec := run.recs[from:item.end]
		from = item.end
		if !item.packet || item.err != nil || storage.DecodeRecord(rec, &e.packet) != nil {
			continue
		}
		identity := cmp.Or(e.packet.Identity, item.id.Seq)
		if _, there := slices.BinarySearch(e.dumper.delivered, identity); there {
			identities = append(identities, identity)
		}
	}
	return e.deliveries.read(e.dumper, identities)
}

// first notes that a packet with a delivery state was met, and returns the sequence of the one that
// was met before with that identity, 0 if there was none. A folder into which both states were
// loaded would not start: it counts one too many.
func (e *runEncoder) first(id storage.PacketID, d *Delivery, expired bool) uint64 {
	if d == nil || expired {
		return 0
	}
	at, _ := slices.BinarySearch(e.dumper.delivered, d.Identity)
	if atomic.CompareAndSwapUint64(&e.matched[at], 0, id.Seq) {
		return 0
	}
	return atomic.LoadUint64(&e.matched[at])
}

// read decodes a packet and finds its delivery state, nil if it has none. A salvage goes by the
// sequence where no store has the identity.
func (e *runEncoder) read(id storage.PacketID, rec []byte) (*Delivery, error) {
	p := &e.packet
	if err := decodeRecord(id, rec, p); err != nil {
		return nil, err
	}
	if m := &e.marks; p.Identity != 0 && (p.Identity <= m.LowSeq || p.Identity >= m.NextSeq) {
		if !e.Salvage {
			return nil, fmt.Errorf("packet %v: its identity %d is not between the marks %d and %d", id, p.Identity, m.LowSeq, m.NextSeq)
		}
		p.Identity = 0
	}
	if unique, ok := e.uniques[storage.UniqueID{Queue: id.Queue, Identity: cmp.Or(p.Identity, id.Seq)}]; ok {
		p.Unique = unique // of an older version it is in the record
	}
	return e.deliveries.find(cmp.Or(p.Identity, id.Seq)), nil
}

func decodeRecord(id storage.PacketID, rec []byte, p *storage.Packet) error {
	if err := storage.DecodeRecord(rec, p); err != nil {
		return unreadable(id, err)
	}
	switch {
	case len(p.Key) > maxKeyLen:
		return fmt.Errorf("packet %v has a key of %d bytes: at most %d", id, len(p.Key), maxKeyLen)
	case len(p.Unique) > storage.MaxUnique:
		return fmt.Errorf("packet %v has a unique id of %d bytes: at most %d", id, len(p.Unique), storage.MaxUnique)
	}
	return nil
}

// writeRun is the pipeline's last stage. It returns errEnough once the limit is reached.
func (d *dumper) writeRun(run *run) error {
	if run.damage != nil {
		if !d.Salvage {
			return run.damage
		}
		d.finding(storage.FindingRecord, "delivery states", "some are left out: %v", run.damage)
	}
	for _, lost := range run.lost {
		if !d.Salvage {
			return fmt.Errorf("%w: %w", storage.ErrDamaged, lost.Err)
		}
		if d.report.Lost++; len(d.report.Unreadable) < maxUnreadable {
			d.report.Unreadable = append(d.report.Unreadable, lost)
		}
	}
	for _, f := range run.duplicates {
		d.finding(f.Kind, f.Key, "%s", f.What)
	}
	for _, q := range run.filled {
		d.filled[storage.FullName(q.Database, q.Name)] = true
	}
	d.report.Expired += run.expired
	d.report.Packets += run.packets
	d.report.Queues += run.queues
	if err := d.write(run.out); err != nil {
		return err
	}
	if d.Limit > 0 && d.report.Packets >= d.Limit {
		return errEnough
	}
	return nil
}

func (run *run) reset() {
	clear(run.items)
	clear(run.lost)
	clear(run.filled)
	run.items, run.recs, run.out, run.lost, run.filled = run.items[:0], run.recs[:0], run.out[:0], run.lost[:0], run.filled[:0]
	run.duplicates = nil
	run.packets, run.queues, run.expired, run.damage = 0, 0, 0, nil
}
