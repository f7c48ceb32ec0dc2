// Package recovery turns a data folder into what the broker starts from. It scans the store, builds
// the index and compares the result with the control record. So a lost or resurrected packet is
// seen before the first client is served.
//
//	recovery.go    Restore: from a store to a State
//	scan.go        reading packets and building the index at the same time
//	sharerule.go   what a queue with share-by says to the index
//	deliveries.go  reading delivery states, and giving them to their packets
//	delivery.go    a delivery state that waits for its packet
//	numbers.go     which sequences and identities packets have
//	keys.go        reading strings and hashes
//	pushtimes.go   when packets were pushed
//	README.md      damage and salvage, for operators
//
// The folders below work on a data folder: load, verify and compact while no server does, dump and
// archive on the folder of a running one, too. pipeline, jsonbytes and recoverytest are what they
// share.
package recovery

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/index/keyspace"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Source is the part of a storage.Store that recovery reads. Its methods are called by one
// goroutine at a time.
type Source interface {
	// Control returns the control record as of opening.
	Control() content.Control
	// Flush says which queues, strings and hashes are dropped.
	Flush() content.Flush
	// Walk shows a visitor what the store holds. An error of the visitor ends it.
	Walk(v storage.Visitor) error
	// Verify compares a tally of all packets, heads, fields and delivery states with the control
	// record, and lets the store begin. A difference is an error that wraps storage.ErrLoss.
	Verify(scan content.Tally) error
}

// Queue is the definition of a queue, with its number in the index.
type Queue struct {
	content.Queue
	Index  index.QueueID
	Shares []*content.Share // what its shares have of their own, in the order of their numbers
}

// Worker is a consumer that a delivery state names.
type Worker struct {
	Queue   index.QueueID // of the packet
	Name    string
	Packets int   // whose delivery state names it
	Seen    int64 // its last claim of those, Unix milliseconds
}

// Expired are packets of one queue that had expired at a start. They are in the store, and not in
// the index: ten million of them would take half a gigabyte. Whoever serves the state deletes them.
// Until then their queue stays defined: a start under a clock that is behind may find them alive.
type Expired struct {
	Queue index.QueueID    // 0: its definition is gone
	From  content.PacketID // the first one
	To    content.PacketID // the last one
	Count int
}

// State is what a broker starts from.
type State struct {
	Index  *index.Index
	Queues []Queue
	// Dropped are queues that nobody can name. They have no name in the index, either; their packets
	// and then their definitions are to be deleted.
	Dropped []Queue
	Names   *keyspace.Directory // with strings and hashes; the broker adds the queues
	// Leftovers are keys without a name, of which records are to be deleted: their fields, and their
	// head if its version is not 0. Their values are not in memory: Small is empty, or nil for a large
	// one.
	Leftovers []*keyspace.Entry
	// Workers are the consumers of index.Delivery.Consumer: number n is Workers[n-1]. Two queues have
	// two numbers for one name.
	Workers []Worker
	// Expired are in the order of the numbers of their queues. Held are those that have expired and
	// stay, in the order of their keys: they are claimed.
	Expired []Expired
	Held    []content.PacketID
	// Orphans are delivery states without a packet, or with one that has expired, to be deleted after
	// those: without its delivery state a packet would be ready if the clock was set back.
	Orphans []content.Removed
	// EndedUniques are records of unique pushes to be deleted: of windows that are over, and of
	// packets and queues that are gone.
	EndedUniques []content.UniqueID
	// EndedShares are what shares of queues had that are gone, to be deleted.
	EndedShares []content.ShareID

	Rests  Rests
	Marks  content.Marks
	Now    int64 // Options.Now
	Time   int64 // of the last batch, Unix milliseconds; of a clock that is behind: not after Options.Now
	Behind int64 // by how much the clock is behind the last batch, in milliseconds; 0: it is not
	Report Report

	// PushTimes tell when packets were pushed, by index.End, the lowest numbers first.
	PushTimes [2][]PushTime
}

// Rests holds what a later version wrote in records that the broker writes anew. There are few or
// none. No number is given twice, except to queues.
type Rests struct {
	Queues map[uint32]content.Rest
	Items  map[content.ValueID]content.Rest // heads and fields
	States map[uint64]content.Rest          // by the identities of their packets
}

// keepRest keeps the rest of a record in one of Rests.
func keepRest[K comparable](all *map[K]content.Rest, of K, rest content.Rest) {
	if rest.Fields == 0 {
		return
	}
	if *all == nil {
		*all = make(map[K]content.Rest)
	}
	(*all)[of] = rest
}

// Report says what a recovery found.
type Report struct {
	Packets  int           // queued packets, but not of dropped queues
	Keys     int           // strings and hashes
	Queues   int           // queues with a definition
	Claimed  int           // queued packets whose lease has not ended
	Expired  int           // packets on disk that had expired; State.Expired
	Last     int64         // time of the last batch, Unix milliseconds
	Findings []string      // losses that were accepted, and what was left out; empty in a sound folder
	Took     time.Duration // to read all records
}

// PerSecond is how many packets were read a second, expired ones included.
func (r Report) PerSecond() int {
	return int(float64(r.Packets+r.Expired) / max(r.Took.Seconds(), 1e-6))
}

// Log writes the report as one line, and one line for each finding.
func (r Report) Log(log *slog.Logger) {
	log.Info("recovered", "packets", r.Packets, "claimed", r.Claimed, "queues", r.Queues, "keys", r.Keys, "expired", r.Expired,
		"packets_per_second", r.PerSecond(), "took", r.Took.Round(time.Millisecond), "findings", len(r.Findings))
	for _, f := range r.Findings {
		log.Warn("finding", "what", f)
	}
}

// Options say how to recover.
type Options struct {
	Now        int64           // Unix milliseconds: what has expired by then goes
	AcceptLoss bool            // go on where Restore would return storage.ErrLoss
	NoIndex    bool            // for who only wants the report: the state has no packets and no values
	Progress   func(count int) // called every 2^16 records, if not nil
	Step       func() error    // storage.Visitor.Step, called by one goroutine at a time

	// Defaults returns the settings of a queue that has none of its own, nil for none, so its packets
	// come to their shares at once.
	Defaults func(name string) *content.Settings

	// Accepted are the losses that opening the store accepted (storage.Store.Accepted). They become
	// findings of the report.
	Accepted []storage.Finding
}

// Restore scans the store and builds the index. It returns an error that wraps storage.ErrLoss when
// the scan disagrees with the control record or finds packets without a queue definition, unless
// the options accept that.
func Restore(src Source, o Options) (*State, error) {
	start, control := time.Now(), src.Control()
	r := restorer{
		Options:    o,
		state:      State{Index: index.New(), Names: keyspace.New(), Marks: control.Marks, Now: o.Now, Time: min(control.Time, o.Now), Behind: max(0, control.Time-o.Now)},
		queues:     make(map[uint32]target),
		flush:      src.Flush(),
		time:       control.Time,
		deliveries: newDeliveries(control.Deliveries),
	}
	for _, f := range o.Accepted {
		r.finding("%v (accepted)", f)
	}
	err := src.Walk(storage.Visitor{Queue: r.queue, Share: r.share, State: r.tried, Item: r.item, Step: r.Step, Uncounted: true})
	if err == nil {
		r.endHash()
		err = r.scan(src)
	}
	r.leaveDeliveries()
	if err == nil { // after the packets, so that each id comes to its own, and none waits in memory
		err = src.Walk(storage.Visitor{Unique: r.unique, Step: r.Step, Uncounted: true})
	}
	if err != nil {
		return nil, err
	}
	if r.orphans > 0 {
		err = r.accept(fmt.Errorf("%w: the definitions of the queues of %d packets are gone", storage.ErrLoss, r.orphans))
	}
	if err == nil { // Verify comes last: what is refused before it leaves the folder as it was
		err = r.accept(src.Verify(r.tally))
	}
	if err != nil {
		return nil, err
	}
	r.state.PushTimes = [...][]PushTime{index.Newest: r.pushTimes.of(index.Newest), index.Oldest: r.pushTimes.of(index.Oldest)}
	report := &r.state.Report
	report.Last, report.Queues, report.Took = control.Time, len(r.state.Queues), time.Since(start)
	return &r.state, nil
}

// restorer is one recovery under way.
type restorer struct {
	Options
	state  State
	queues map[uint32]target
	hash   *keyspace.Entry // whose fields come, a leftover too; nil: none
	flush  content.Flush
	time   int64         // of the last batch
	tally  content.Tally // of what has reached the state
	seen   int

	pushTimes pushTimes

	deliveries deliveries // that wait for their packets

	orphans    int // packets of queues without a definition: nobody can name those
	sameNames  int // heads and fields with the name of another
	numbers    Numbers
	duplicates int // packets with a number of another
}

// target is where the packets of a queue go.
type target struct {
	ix      index.QueueID
	dropped bool
}

// maxSameFindings keeps the report short when a queue of millions has lost its definition, or
// millions of records came back.
const maxSameFindings = 10

func (r *restorer) finding(format string, args ...any) {
	r.state.Report.Findings = append(r.state.Report.Findings, fmt.Sprintf(format, args...))
}

// accept makes a finding of a loss that the options accept, and returns any other error.
func (r *restorer) accept(err error) error {
	if err == nil || !r.AcceptLoss || !errors.Is(err, storage.ErrLoss) {
		return err
	}
	r.finding("%v (accepted)", err)
	return nil
}

// some is finding for the first of many that are counted in n.
func (r *restorer) some(n *int, format string, args ...any) {
	if *n++; *n <= maxSameFindings {
		r.finding(format, args...)
	}
}

func (r *restorer) queue(q content.Queue) error {
	ix := r.state.Index.AddQueue()
	if r.flush.DropsQueue(&q) {
		r.queues[q.ID] = target{ix, true}
		r.state.Dropped = append(r.state.Dropped, Queue{Queue: content.Queue{ID: q.ID}, Index: ix})
		return nil
	}
	r.queues[q.ID] = target{ix: ix}
	keepRest(&r.state.Rests.Queues, q.ID, q.Rest)
	q.Name, q.Settings = bytes.Clone(q.Name), q.Settings.Clone()
	q.Due, q.SharesFrom = r.noLonger(q.Due), r.noLonger(q.SharesFrom)
	r.state.Queues = append(r.state.Queues, Queue{Queue: q, Index: ix})
	s := q.Settings
	if s == nil && r.Defaults != nil {
		s = r.Defaults(string(q.Name))
	}
	if s != nil {
		r.state.Index.KeepDead(ix, s.RetainDead)
		r.state.Index.ShareBy(ix, ShareRule(s.ShareBy)) // now, so each packet comes to its share
		r.state.Index.SetStrict(ix, s.Strict, s.HoldsDead())
	}
	return nil
}

// share reads what a share has of its own. Queues come in the order of their numbers, and so do
// these.
func (r *restorer) share(s *content.Share) error {
	all := r.state.Queues
	at, there := slices.BinarySearchFunc(all, s.Queue, func(q Queue, id uint32) int { return cmp.Compare(q.ID, id) })
	if there && s.Due != 0 && len(s.Rate) == 0 { // an earlier version let it give, and knows no SharesFrom
		all[at].SharesFrom = 0
	}
	if !there || s.Empty() {
		r.state.EndedShares = append(r.state.EndedShares, s.ShareID)
		return nil
	}
	s.HeldUntil, s.Due = r.noLonger(s.HeldUntil), r.noLonger(s.Due)
	all[at].Shares = append(all[at].Shares, new(*s))
	r.state.Index.SetShare(all[at].Index, string(s.Name), ShareOwn(s))
	return nil
}

// noLonger is when a wait ends that was to end at a moment. If the clock is behind, it is no longer
// for that.
func (r *restorer) noLonger(until int64) int64 {
	if past := r.time - r.Now; past > 0 && until > r.Now {
		return max(r.Now, until-past)
	}
	return until
}

// progress counts a record.
func (r *restorer) progress() {
	if r.seen++; r.Progress != nil && r.seen&0xffff == 0 {
		r.Progress(r.seen)
	}
}

func (r *restorer) packet(id content.PacketID, m *content.Meta, tags []byte) error {
	r.tally.Add(id, m.Expiry)
	r.progress()
	d := r.delivery(id, m)
	switch over := m.Expired(r.Now); {
	case over && d.Leased(r.Now):
		r.state.Held = append(r.state.Held, id)
	case over:
		r.expired(id)
		return nil
	}
	q, ok := r.queues[id.Queue]
	if !ok {
		if d != nil {
			d.Keep = true // as the packet
		}
		r.some(&r.orphans, "packet %v belongs to a queue without a definition and is left out", id)
		return nil
	}
	e := entry(q.ix, id, m)
	e.Tags = tags
	if !q.dropped && !r.numbers.Add(id.Seq, cmp.Or(m.Identity, id.Seq)) {
		r.setAside(id, &e)
	} else if d != nil {
		r.apply(d, &e, q.dropped)
	}
	fits := len(e.Key) <= index.MaxKey
	if fits && !r.NoIndex {
		fits = r.state.Index.Push(e, r.Now) != 0
	}
	if !fits {
		return fmt.Errorf("packet %v does not fit the index: its key has %d bytes, or four billion packets are queued", id, len(m.Key))
	}
	if !q.dropped {
		r.pushTimes.add(cmp.Or(m.Identity, id.Seq), m.EnqueuedAt, r.Now)
		r.state.Report.Packets++
	}
	return nil
}

// expired notes a packet that has expired.
func (r *restorer) expired(id content.PacketID) {
	all := r.state.Expired
	if n := len(all); n == 0 || all[n-1].From.Queue != id.Queue {
		all = append(all, Expired{Queue: r.queues[id.Queue].ix, From: id})
	}
	all[len(all)-1].To = id
	all[len(all)-1].Count++
	r.state.Expired = all
	r.state.Report.Expired++
}

// unique reads the record of a unique push. Its id goes to the index at once.
func (r *restorer) unique(u *content.Unique) error {
	r.tally.AddUnique(u.UniqueID)
	r.progress()
	q, ok := r.queues[u.Queue]
	switch {
	case !ok || r.NoIndex:
	case u.Until == 0:
		ok = r.state.Index.GiveUnique(q.ix, u.Identity, u.ID, u.UntilClaim, uint32(content.ExtraBytes(&content.Packet{Unique: u.ID})))
	default:
		ok = !u.Expired(r.Now) && r.state.Index.AddWindow(q.ix, u.ID, u.Identity, u.Until)
	}
	if !ok {
		r.state.EndedUniques = append(r.state.EndedUniques, u.UniqueID)
	}
	return nil
}

// entry is the index entry of a stored packet, but for its tags.
func entry(q index.QueueID, id content.PacketID, m *content.Meta) index.Entry {
	return index.Entry{
		Queue:    q,
		Wide:     m.Wide(),
		Priority: id.Priority,
		Seq:      id.Seq,
		Key:      m.Key,
		Hash:     m.Hash,
		Size:     m.Size + m.Beside,
		TagBytes: m.Extra,
		Flags:    content.Flags(m.Expiry != 0, m.Large),
		Identity: m.Identity,
		Expiry:   m.Expiry,
		Until:    m.NotBefore,
		Delivery: index.Delivery{Attempts: uint16(min(m.Attempts, 0xffff))},
	}
}
