package verify

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// A run of packets, the room for its records, and how often progress is told.
const (
	runPackets    = 1024
	runBytes      = 256 << 10
	progressEvery = 100 * time.Millisecond
)

// verifyRun is a run of packets on its way from the reader to a decoder and to the judge. Whoever
// holds it may touch it.
type verifyRun struct {
	ids  []storage.PacketID
	ends []int // of each record in recs; a record that cannot be read is empty
	recs []byte
	errs []verifyError // of the packets that cannot be read, in order

	counts  []QueueCount // one for each queue in the run, in order
	tally   storage.Tally
	large   payloadSum
	decoded chan struct{} // holds one token when the fields above are filled
}

type verifyError struct {
	at  int // which of ids
	err error
}

// scan reads every record on this goroutine, decodes on several and judges on another.
func (v *verifier) scan(ctx context.Context) error {
	workers := runtime.GOMAXPROCS(0)
	n := 2*workers + 2
	free, work, order := make(chan *verifyRun, n), make(chan *verifyRun, n), make(chan *verifyRun, n)
	for range n {
		free <- &verifyRun{decoded: make(chan struct{}, 1)}
	}
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() { // ends when work is closed
			var p storage.Packet
			for run := range work {
				run.decode(&p, v.Now)
				run.decoded <- struct{}{}
			}
		})
	}
	wait.Go(func() { // ends when order is closed; what v holds is this goroutine's until then
		tell, seen := time.Now(), int64(0)
		for run := range order {
			<-run.decoded
			v.judge(run)
			seen += int64(len(run.ids))
			if now := time.Now(); v.Progress != nil && now.After(tell) {
				tell = now.Add(progressEvery)
				v.Progress("packets", seen, int64(v.control.Live))
			}
			run.reset()
			free <- run
		}
	})
	run := <-free
	err := v.src.Records(storage.QueueRange{}, func(id storage.PacketID, rec []byte, damage error) error {
		run.ids = append(run.ids, id)
		run.recs = append(run.recs, rec...)
		run.ends = append(run.ends, len(run.recs))
		if rec == nil {
			run.errs = append(run.errs, verifyError{len(run.ids) - 1, damage})
		}
		if len(run.ids) < runPackets && len(run.recs) < runBytes {
			return nil
		}
		work <- run
		order <- run
		run = <-free
		return ctx.Err()
	})
	work <- run
	order <- run
	close(work)
	close(order)
	wait.Wait()
	v.missingQueues()
	return err
}

// decode reads every record of the run in full.
func (run *verifyRun) decode(p *storage.Packet, now int64) {
	damaged := run.errs
	run.errs = nil
	from := 0
	for i, id := range run.ids {
		rec := run.recs[from:run.ends[i]]
		from = run.ends[i]
		if len(damaged) > 0 && damaged[0].at == i {
			run.errs = append(run.errs, damaged[0])
			damaged = damaged[1:]
			continue
		}
		if err := storage.DecodeRecord(rec, p); err != nil {
			run.errs = append(run.errs, verifyError{i, fmt.Errorf("the record cannot be read: %w", err)})
			continue
		}
		run.tally.Add(id, p.Expiry)
		if storage.IsLarge(len(p.Payload)) {
			run.large.add(id.Queue, id.Seq, int64(len(p.Payload)))
		}
		run.count(id, p, now)
	}
}

func (run *verifyRun) count(id storage.PacketID, p *storage.Packet, now int64) {
	n := len(run.counts)
	if n == 0 || run.counts[n-1].ID != id.Queue {
		run.counts = append(run.counts, QueueCount{ID: id.Queue})
		n++
	}
	q := &run.counts[n-1]
	if p.Expired(now) {
		q.Expired++
		return
	}
	q.Bytes += int64(len(p.Key) + len(p.Payload))
	switch {
	case id.Priority == 0:
		q.Unselectable++
	case p.NotBefore > now:
		q.Delayed++
	default:
		q.Ready++
	}
}

// judge takes in a decoded run.
func (v *verifier) judge(run *verifyRun) {
	for _, bad := range run.errs {
		v.damage(run.ids[bad.at], bad.err)
	}
	for i := range run.counts {
		v.count(&run.counts[i])
	}
	v.tally.Merge(run.tally)
	v.large.n += run.large.n
	v.large.sum += run.large.sum
	for _, id := range run.ids {
		v.place(id)
	}
}

// damage makes a finding of a record that cannot be read.
func (v *verifier) damage(id storage.PacketID, err error) {
	v.damages++
	if len(v.damaged) < maxFindings {
		v.damaged[id] = true
	}
	v.finding(storage.FindingRecord, id.String(), "%v", err)
}

func (v *verifier) count(c *QueueCount) {
	n := c.Ready + c.Delayed + c.Unselectable
	v.report.Packets += n
	v.report.Expired += c.Expired
	v.report.Bytes += c.Bytes
	at, ok := v.queueAt(c.ID)
	if !ok {
		return
	}
	q := &v.report.Queues[at]
	q.Ready += c.Ready
	q.Delayed += c.Delayed
	q.Unselectable += c.Unselectable
	q.Expired += c.Expired
	q.Bytes += c.Bytes
}

// place judges where a packet is: its queue and its sequence.
func (v *verifier) place(id storage.PacketID) {
	if _, ok := v.queueAt(id.Queue); !ok {
		o := v.orphans[id.Queue]
		if o == nil && len(v.orphans) < maxFindings {
			o = &orphanCount{first: id}
			v.orphans[id.Queue] = o
		}
		if o != nil {
			o.n++
		}
	}
	if c := &v.control; v.hasControl() && (id.Seq >= c.NextSeq || id.Seq <= c.LowSeq) {
		v.finding(storage.FindingRecord, id.String(),
			"its sequence is not between those of the next packets at the two ends, %d and %d: another packet may get the same", c.LowSeq, c.NextSeq)
	}
}

// missingQueues makes findings of packets that belong to no queue, one for each number.
func (v *verifier) missingQueues() {
	for _, id := range slices.Sorted(maps.Keys(v.orphans)) {
		o := v.orphans[id]
		v.finding(storage.FindingOwner, queueKey(id),
			"it has no definition, so nobody can ask for its %d packets, of which the first is %v", o.n, o.first)
	}
}

func (run *verifyRun) reset() {
	clear(run.errs)
	run.ids, run.ends, run.recs, run.errs = run.ids[:0], run.ends[:0], run.recs[:0], run.errs[:0]
	run.counts, run.tally, run.large = run.counts[:0], storage.Tally{}, payloadSum{}
}
