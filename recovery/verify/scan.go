package verify

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/recovery/contents"
	"github.com/holdfast-queue/holdfast/recovery/pipeline"
	"github.com/holdfast-queue/holdfast/storage"
)

// A run ends at so many packets, or so many bytes of records.
const (
	runPackets = 1024
	runBytes   = 256 << 10
)

// progressEvery is how often Progress is called.
const progressEvery = 100 * time.Millisecond

// run is a run of neighbouring packets on its way through the pipeline.
type run struct {
	packets []packet
	records []byte

	// The workers fill these in.
	queues   []runOfQueue // in the order of the packets
	matched  []matched
	findings []storage.Finding
	tally    storage.Tally
	unread   uint64
	large    payloadSum
}

// packet is one packet of a run.
type packet struct {
	id     storage.PacketID
	end    int   // of its record in run.records
	damage error // why there is no record, or nil
}

// matched is a packet that has a delivery state.
type matched struct {
	id       storage.PacketID
	delivery *contents.Delivery
}

// runOfQueue is what a run holds of one queue.
type runOfQueue struct {
	QueueCount
	first storage.PacketID // that has not expired
	n     int64            // packets that have not expired, also those that cannot be read
}

// checkPackets reads, decodes and counts every packet.
func (v *verifier) checkPackets(ctx context.Context) error {
	err := pipeline.Run(ctx, pipeline.Stages[*run]{
		New:  func() *run { return &run{} },
		Read: v.read,
		Work: func() func(*run) {
			var p storage.Packet
			return func(r *run) { v.check(r, &p) }
		},
		Deliver: v.deliver,
	})
	for _, q := range v.orphans {
		v.finding(storage.FindingOwner, queueKey(q.ID),
			"it has no definition, so no client can reach its packets: there are %d, the first is %v", q.n, q.first)
	}
	return err
}

// read fills runs with records. It looks into none of them.
func (v *verifier) read(_ context.Context, next func() (*run, error)) error {
	r, err := next()
	if err != nil {
		return err
	}
	err = v.src.Records(storage.QueueRange{}, func(id storage.PacketID, rec []byte, damage error) (err error) {
		r.records = append(r.records, rec...)
		r.packets = append(r.packets, packet{id, len(r.records), damage})
		if len(r.packets) == runPackets || len(r.records) >= runBytes {
			r, err = next()
		}
		return err
	})
	if _, e := next(); err == nil { // hands the last run over
		err = e
	}
	return err
}

// check decodes the records of a run and counts them. It is the work of several goroutines.
func (v *verifier) check(r *run, p *storage.Packet) {
	from := 0
	for _, at := range r.packets {
		rec := r.records[from:at.end]
		from = at.end
		q := r.queue(at.id)
		r.checkMarks(v, "sequence", at.id, at.id.Seq)
		err := at.damage
		if err == nil {
			err = storage.DecodeRecord(rec, p)
		}
		if err != nil {
			r.unread++
			q.add(at.id)
			r.match(v, at.id, at.id.Seq)
			r.finding(at.id, "the record cannot be read: "+plain(err))
			continue
		}
		if p.Identity != 0 {
			r.checkMarks(v, "identity", at.id, p.Identity)
		}
		r.tally.Add(at.id, p.Expiry)
		if storage.IsLarge(len(p.Payload)) {
			r.large.add(at.id.Queue, at.id.Seq, int64(len(p.Payload)))
		}
		q.count(at.id, p, r.match(v, at.id, cmp.Or(p.Identity, at.id.Seq)), v.Now)
	}
}

// checkMarks finds a number that was never handed out to a packet.
func (r *run) checkMarks(v *verifier, what string, id storage.PacketID, n uint64) {
	if c := &v.control; v.hasControl() && (n >= c.NextSeq || n <= c.LowSeq) {
		r.finding(id, fmt.Sprintf("its %s %d is not between %d and %d, the sequences of the next packets at the two ends: "+
			"another packet may get the same", what, n, c.LowSeq, c.NextSeq))
	}
}

// queue returns the counts of the queue of the next packet.
func (r *run) queue(id storage.PacketID) *runOfQueue {
	if n := len(r.queues); n == 0 || r.queues[n-1].ID != id.Queue {
		r.queues = append(r.queues, runOfQueue{QueueCount: QueueCount{ID: id.Queue}})
	}
	return &r.queues[len(r.queues)-1]
}

// add counts a packet that has not expired.
func (q *runOfQueue) add(id storage.PacketID) {
	if q.n == 0 {
		q.first = id
	}
	q.n++
}

// match notes that a packet is there, and returns its delivery state, nil if it has none.
func (r *run) match(v *verifier, id storage.PacketID, identity uint64) *contents.Delivery {
	d := v.deliveries.Find(identity)
	if d != nil {
		r.matched = append(r.matched, matched{id, d})
	}
	return d
}

func (r *run) finding(id storage.PacketID, what string) {
	r.findings = append(r.findings, storage.Finding{Kind: storage.FindingRecord, Key: id.String(), What: what})
}

// count counts a packet by its state.
func (q *runOfQueue) count(id storage.PacketID, p *storage.Packet, d *contents.Delivery, now int64) {
	leased := d.Leased(now)
	if p.Expired(now) && !leased {
		q.Expired++
		return
	}
	q.add(id)
	q.Bytes += int64(len(p.Key) + len(p.Payload))
	state, notBefore := storage.Ready, p.NotBefore
	if d != nil {
		if state = d.State; state == storage.Delayed {
			notBefore = max(notBefore, d.Until)
		}
	}
	switch {
	case leased:
		q.Claimed++
	case state == storage.Dead:
		q.Dead++
	case state == storage.Done:
		q.Done++
	case id.Priority == 0:
		q.Unselectable++
	case notBefore > now:
		q.Delayed++
	default:
		q.Ready++
	}
}

// deliver adds a run to the report.
func (v *verifier) deliver(r *run) error {
	for _, f := range r.findings {
		v.add(f)
	}
	for i := range r.queues {
		v.addQueue(&r.queues[i])
	}
	v.match(r)
	v.tally.Merge(r.tally)
	v.unread += r.unread
	v.large.merge(r.large)
	v.scanned += int64(len(r.packets))
	if now := time.Now(); now.Sub(v.told) > progressEvery {
		v.told = now
		v.Progress("packets", v.scanned, int64(v.control.Live))
	}
	clear(r.packets)
	*r = run{packets: r.packets[:0], records: r.records[:0], queues: r.queues[:0], matched: r.matched[:0]}
	return nil
}

// addQueue adds the counts of a run to those of the queue. Queues and packets come in the same
// order.
func (v *verifier) addQueue(q *runOfQueue) {
	queues := v.report.Queues
	for v.at < len(queues) && queues[v.at].ID < q.ID {
		v.at++
	}
	there := v.at < len(queues) && queues[v.at].ID == q.ID
	if there && queues[v.at].dropped {
		v.report.LeftOver += q.n + q.Expired
		return
	}
	v.report.Packets += q.packets()
	v.report.Expired += q.Expired
	v.report.Bytes += q.Bytes
	if !there {
		v.addOrphans(q)
		return
	}
	sum := &queues[v.at]
	sum.Ready += q.Ready
	sum.Delayed += q.Delayed
	sum.Unselectable += q.Unselectable
	sum.Claimed += q.Claimed
	sum.Dead += q.Dead
	sum.Done += q.Done
	sum.Expired += q.Expired
	sum.Bytes += q.Bytes
}

// addOrphans notes packets of a queue without a definition: their queue becomes one finding. A
// queue ends also while expired packets are left, which a start leaves to the database.
func (v *verifier) addOrphans(q *runOfQueue) {
	n := len(v.orphans)
	switch {
	case q.n == 0:
	case n > 0 && v.orphans[n-1].ID == q.ID:
		v.orphans[n-1].n += q.n
	case n < maxFindings:
		v.orphans = append(v.orphans, *q)
	}
}
