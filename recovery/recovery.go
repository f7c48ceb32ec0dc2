// Package recovery turns a data folder into what the broker starts from: it scans the store,
// builds the index and holds the result against the control record, so that a lost or
// resurrected packet is seen before the first client is served.
package recovery

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// Source is what recovery reads. Its calls are made from one goroutine at a time.
type Source interface {
	Control() storage.Control
	Queues(fn func(storage.Queue) error) error
	Packets(fn func(storage.PacketID, *storage.Meta) error) error
	Verify(scan storage.Tally) error
}

// Queue ties a queue's number in the store to its number in the index.
type Queue struct {
	ID    uint32
	Index index.QueueID
	Name  []byte
}

// State is what a broker starts from.
type State struct {
	Index  *index.Index
	Queues []Queue
	Marks  storage.Marks
	Report Report
}

// Report says what a recovery found.
type Report struct {
	Packets  int           // queued packets
	Queues   int           // queues with a definition
	Expired  int           // packets on disk whose time had passed; left out
	Findings []string      // what does not agree, a sentence each; empty in a sound folder
	Took     time.Duration // from the first record to the last
}

// PerSecond is how many packets were read a second.
func (r Report) PerSecond() int {
	return int(float64(r.Packets+r.Expired) / max(r.Took.Seconds(), 1e-6))
}

// Log writes the report as one line, and one line for each finding.
func (r Report) Log(log *slog.Logger) {
	log.Info("recovered", "packets", r.Packets, "queues", r.Queues, "expired", r.Expired,
		"packets_per_second", r.PerSecond(), "took", r.Took.Round(time.Millisecond), "findings", len(r.Findings))
	for _, f := range r.Findings {
		log.Warn("finding", "what", f)
	}
}

// Options say how to recover.
type Options struct {
	Now        int64           // Unix milliseconds: what has expired by then is left out
	AcceptLoss bool            // go on where Restore would return storage.ErrLoss
	Progress   func(count int) // called every 2^16 packets, if not nil

	// Accepted is what opening the store accepted, see storage.Store.Accepted:
	// findings of the report, too.
	Accepted []storage.Finding
}

// Restore scans the store and builds the index. It returns an error that wraps storage.ErrLoss
// when the scan does not reproduce the control record, or finds packets of queues whose definitions
// are gone, and the options do not accept that.
func Restore(src Source, o Options) (*State, error) {
	start := time.Now()
	r := restorer{
		Options: o,
		state:   State{Index: index.New(), Marks: src.Control().Marks},
		queues:  make(map[uint32]index.QueueID),
	}
	for _, f := range o.Accepted {
		r.finding("%v (accepted)", f)
	}
	if err := src.Queues(r.queue); err != nil {
		return nil, fmt.Errorf("read queue definitions: %w", err)
	}
	if err := r.scan(src); err != nil {
		return nil, fmt.Errorf("read packets: %w", err)
	}
	err := src.Verify(r.tally)
	if err == nil && r.orphans > 0 {
		err = fmt.Errorf("%w: the definitions of the queues of %d packets are gone", storage.ErrLoss, r.orphans)
	}
	if err != nil {
		if !o.AcceptLoss {
			return nil, err
		}
		r.finding("%v (accepted)", err)
	}
	report := &r.state.Report
	report.Queues = len(r.state.Queues)
	report.Took = time.Since(start)
	return &r.state, nil
}

// restorer is one recovery under way.
type restorer struct {
	Options
	state  State
	queues map[uint32]index.QueueID
	tally  storage.Tally
	seen   int

	orphans int // packets of queues without a definition: nobody could ask for them
}

// maxOrphanFindings keeps a report readable in which a queue of millions has lost its name.
const maxOrphanFindings = 10

func (r *restorer) finding(format string, args ...any) {
	r.state.Report.Findings = append(r.state.Report.Findings, fmt.Sprintf(format, args...))
}

func (r *restorer) queue(q storage.Queue) error {
	ix := r.state.Index.AddQueue()
	r.queues[q.ID] = ix
	r.state.Queues = append(r.state.Queues, Queue{ID: q.ID, Index: ix, Name: append([]byte(nil), q.Name...)})
	return nil
}

func (r *restorer) packet(id storage.PacketID, m *storage.Meta) error {
	r.tally.Add(id, m.Expiry)
	if r.seen++; r.Progress != nil && r.seen&0xffff == 0 {
		r.Progress(r.seen)
	}
	if m.Expired(r.Now) {
		r.state.Report.Expired++
		return nil
	}
	q, ok := r.queues[id.Queue]
	if !ok {
		if r.orphans++; r.orphans <= maxOrphanFindings {
			r.finding("packet %d/%d/%d belongs to a queue without a definition and is left out", id.Queue, id.Priority, id.Seq)
		}
		return nil
	}
	r.state.Index.Push(Entry(q, id, m), r.Now)
	r.state.Report.Packets++
	return nil
}

// Entry is the index entry of a stored packet.
func Entry(q index.QueueID, id storage.PacketID, m *storage.Meta) index.Entry {
	return index.Entry{
		Queue:     q,
		Wide:      m.Wide(),
		Priority:  id.Priority,
		Seq:       id.Seq,
		Key:       m.Key,
		Size:      m.Size,
		Flags:     storage.Flags(m.Expiry != 0, m.Large, m.More),
		Expiry:    m.Expiry,
		NotBefore: m.NotBefore,
		Attempts:  uint16(min(m.Attempts, 0xffff)),
	}
}
