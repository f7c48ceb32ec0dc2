package dump

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// A run of packets is read on the caller's goroutine, encoded on one of several, and written by
// another, in order: the three overlap. Runs are handed round, so memory is bounded by their number.
const (
	runPackets = 1024
	runBytes   = 256 << 10
)

// dumpRun is a run of packets on its way. Whoever holds it may touch it.
type dumpRun struct {
	queue *storage.Queue // that the first packets belong to; nil before the first queue
	items []dumpItem
	recs  []byte

	out     []byte
	cuts    []dumpCut // after each packet, when there is a limit
	total   dumpCut
	expired int64
	lost    []Unreadable
	encoded chan struct{} // holds one token when the fields above are filled
}

// dumpItem is a packet, or the record of a queue.
type dumpItem struct {
	queue *storage.Queue
	id    storage.PacketID
	end   int // of the packet's record in recs
	err   error
}

// dumpCut is a place in out, and what lies before it.
type dumpCut struct {
	at              int
	packets, queues int64
}

var errEnough = errors.New("the dump needs no more packets")

// dumpFlow is the goroutines of a dump and what ties them.
type dumpFlow struct {
	*dumper
	free  chan *dumpRun // for the reader to fill
	work  chan *dumpRun // to be encoded
	order chan *dumpRun // to be written, in order
	stop  chan struct{} // closed by the writer: what is read now is not needed
	wait  sync.WaitGroup
	err   error // of the writer, once wait is over

	// These are the reader's.
	run     *dumpRun // being filled
	queue   *storage.Queue
	control storage.Control
}

func (d *dumper) packets() error {
	workers := runtime.GOMAXPROCS(0)
	f := &dumpFlow{
		dumper:  d,
		control: d.src.Control(),
		free:    make(chan *dumpRun, 2*workers+2),
		work:    make(chan *dumpRun, 2*workers+2),
		order:   make(chan *dumpRun, 2*workers+2),
		stop:    make(chan struct{}),
	}
	for range cap(f.free) {
		f.free <- &dumpRun{encoded: make(chan struct{}, 1)}
	}
	for range workers {
		f.wait.Go(f.encode) // ends when work is closed
	}
	f.wait.Go(f.writeRuns) // ends when order is closed
	f.run = <-f.free
	err := f.read()
	if err == nil || f.Limit > 0 && !errors.Is(err, errEnough) { // what was read may be all that is wanted
		_ = f.send()
	}
	close(f.work)
	close(f.order)
	f.wait.Wait()
	if err == nil || errors.Is(err, errEnough) || f.enough() { // what lies behind the limit is of no concern
		err = f.err
	}
	return err
}

// read is the reader: it fills runs until everything is read or nothing more is needed.
func (f *dumpFlow) read() error {
	for _, r := range f.ranges {
		err := f.src.Records(r, f.take)
		switch {
		case errors.Is(err, errEnough):
			return err
		case err != nil && !(f.Salvage && errors.Is(err, storage.ErrDamaged)):
			return fmt.Errorf("read packets: %w", err)
		}
	}
	return f.queuesUpTo(1<<32 - 1)
}

// take adds one packet to the run.
func (f *dumpFlow) take(id storage.PacketID, rec []byte, damage error) error {
	if err := f.misplaced(id); err != nil {
		if !f.Salvage {
			return err
		}
		return f.add(dumpItem{id: id, end: len(f.run.recs), err: err})
	}
	if f.queue == nil || f.queue.ID != id.Queue {
		if err := f.queuesUpTo(id.Queue); err != nil {
			return err
		}
		if f.queue == nil || f.queue.ID != id.Queue {
			if len(f.Queues) > 0 {
				return nil // no name, so none that was asked for
			}
			if err := f.nameless(id); err != nil {
				return err
			}
		}
	}
	if rec == nil {
		damage = fmt.Errorf("packet %d/%d/%d cannot be read: %w", id.Queue, id.Priority, id.Seq, damage)
	} else {
		damage = nil
	}
	if damage != nil && !f.Salvage {
		return damage
	}
	f.run.recs = append(f.run.recs, rec...)
	return f.add(dumpItem{id: id, end: len(f.run.recs), err: damage})
}

// misplaced says why load would refuse the dump if the packet were in it.
func (f *dumpFlow) misplaced(id storage.PacketID) error {
	if err := impossible(id); err != nil {
		return err
	}
	if c := &f.control; !f.Salvage && (id.Seq >= c.NextSeq || id.Seq <= c.LowSeq) {
		return fmt.Errorf("%w: packet %v: its sequence is not between those of the next packets at the two ends, %d and %d",
			storage.ErrDamaged, id, c.LowSeq, c.NextSeq)
	}
	return nil
}

// queuesUpTo adds the records of all queues up to one, so that they stand in order also when no
// packets follow them.
func (f *dumpFlow) queuesUpTo(id uint32) error {
	for f.next < len(f.queues) && f.queues[f.next].ID <= id {
		f.queue = f.queues[f.next]
		f.next++
		if err := f.add(dumpItem{queue: f.queue, end: len(f.run.recs)}); err != nil {
			return err
		}
	}
	return nil
}

// nameless makes up a queue for packets whose queue has no definition.
func (f *dumpFlow) nameless(id storage.PacketID) error {
	if !f.Salvage {
		return fmt.Errorf("%w: packet %d/%d/%d belongs to a queue without a definition; a salvage brings it out",
			storage.ErrDamaged, id.Queue, id.Priority, id.Seq)
	}
	f.queue = &storage.Queue{ID: id.Queue, Name: f.lostName(id.Queue)}
	f.queues = slices.Insert(f.queues, f.next, f.queue)
	f.next++
	f.lost++
	return f.add(dumpItem{queue: f.queue, end: len(f.run.recs)})
}

// add ends the run when it is full.
func (f *dumpFlow) add(item dumpItem) error {
	f.run.items = append(f.run.items, item)
	if len(f.run.items) < runPackets && len(f.run.recs) < runBytes {
		return nil
	}
	return f.send()
}

// send hands the run on and takes an empty one.
func (f *dumpFlow) send() error {
	f.work <- f.run
	f.order <- f.run
	select {
	case <-f.stop:
		return errEnough
	case f.run = <-f.free:
	}
	f.run.queue = f.queue
	return nil
}

// encode is one of the encoders.
func (f *dumpFlow) encode() {
	form := newForm(f.Format, f.Payload)
	var p storage.Packet
	for run := range f.work {
		if run.queue != nil {
			form.enter(run.queue)
		}
		run.encode(f.dumper, form, &p)
		run.encoded <- struct{}{}
	}
}

func (run *dumpRun) encode(d *dumper, form form, p *storage.Packet) {
	from := 0
	for i := range run.items {
		item := &run.items[i]
		rec := run.recs[from:item.end]
		from = item.end
		if item.queue != nil {
			run.out = form.queue(run.out, item.queue)
			run.total.queues++
			continue
		}
		err := item.err
		if err == nil {
			if err = storage.DecodeRecord(rec, p); err != nil {
				err = fmt.Errorf("packet %d/%d/%d cannot be read: %w", item.id.Queue, item.id.Priority, item.id.Seq, err)
			} else if len(p.Key) > maxKeyLen {
				err = fmt.Errorf("packet %v has a key of %d bytes: at most %d", item.id, len(p.Key), maxKeyLen)
			}
		}
		switch {
		case err != nil:
			run.lost = append(run.lost, Unreadable{item.id, err})
		case p.Expired(d.Now):
			run.expired++
		default:
			run.out = form.packet(run.out, item.id, p, d.Now)
			run.total.packets++
			if run.total.at = len(run.out); d.Limit > 0 {
				run.cuts = append(run.cuts, run.total)
			}
		}
	}
	run.total.at = len(run.out)
}

// writeRuns is the writer.
func (f *dumpFlow) writeRuns() {
	next := time.Now()
	for run := range f.order {
		<-run.encoded
		if f.err == nil && !f.enough() {
			f.err = f.writeRun(run)
			if f.err != nil || f.enough() {
				close(f.stop)
			} else if now := time.Now(); f.Progress != nil && now.After(next) {
				next = now.Add(progressEvery)
				f.Progress(f.progress())
			}
		}
		run.reset()
		f.free <- run
	}
}

// progressEvery is how often progress is told.
const progressEvery = 100 * time.Millisecond

func (d *dumper) enough() bool { return d.Limit > 0 && d.report.Packets >= d.Limit }

func (d *dumper) writeRun(run *dumpRun) error {
	cut := run.total
	if left := d.Limit - d.report.Packets; d.Limit > 0 && left <= cut.packets {
		cut = run.cuts[left-1]
	}
	for _, lost := range run.lost {
		if !d.Salvage {
			return fmt.Errorf("%w: %w", storage.ErrDamaged, lost.Err)
		}
		if d.report.Lost++; len(d.report.Unreadable) < maxUnreadable {
			d.report.Unreadable = append(d.report.Unreadable, lost)
		}
	}
	d.report.Expired += run.expired
	d.report.Packets += cut.packets
	d.report.Queues += cut.queues
	return d.write(run.out[:cut.at])
}

func (run *dumpRun) reset() {
	clear(run.items)
	clear(run.lost)
	run.queue, run.items, run.recs, run.out = nil, run.items[:0], run.recs[:0], run.out[:0]
	run.cuts, run.total, run.expired, run.lost = run.cuts[:0], dumpCut{}, 0, run.lost[:0]
}
