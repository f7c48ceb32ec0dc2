package broker

import (
	"cmp"
	"log/slog"
	"math"

	"github.com/holdfast-queue/holdfast/broker/cache"
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// New makes a machine of the state that recovery has built from store.
func New(store Store, state *recovery.State, o Options) *Machine {
	o.Cache = cmp.Or(o.Cache, DefaultCache)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	m := &Machine{
		store: store, log: o.Logger, limits: store.Limits(),
		maxAwaited: MaxAwaited,
		maxRecord:  MaxRecord + max(o.MaxPayload, DefaultMaxPayload) - DefaultMaxPayload,
		ix:         state.Index, names: state.Names, identify: true, flush: store.Flush(), marks: state.Marks, ended: state.Time, behind: state.Behind,
		awaited: make(map[watched]*waiters), classes: []*class{anyClass: {}, narrowClass: {narrow: true}, claimClass: {claims: true}, narrowClaimClass: {narrow: true, claims: true}}, classOf: make(map[string]index.Class),
		watches: make(map[watched][]*Conn), watchers: make(map[*Conn]struct{}),
		cursors: make(map[*ListCursor]struct{}), roleHolders: make(map[string]*roleHolder),
		tails: make(map[watched]int), missedEvents: make(map[source]int), redated: make(map[*queue]index.Place),
		cache: cache.New(o.Cache), spare: newBatch(), defaults: o.Defaults, pushTimes: state.PushTimes, rests: state.Rests,
	}
	m.tx.m = m
	m.ix.OnProgress(o.Progress)
	m.dispatch = index.NewDispatch(func(c index.Class) index.Key { return m.classes[c].found })
	m.marks.NextSeq = max(m.marks.NextSeq, middle+1) // no id and no token is 0, which is false in many languages
	m.loadQueues(state.Queues)
	m.loadGarbage(state)
	m.consumers.load(state.Workers, &m.queues)
	m.open, m.noted = newBatch(), m.marks
	m.open.begin(m.marks)
	if m.behind > storage.Jump.Milliseconds() {
		m.keepWaits(state.Queues)
	}
	return m
}

// keepWaits writes waits anew that recovery has made shorter, as the clock was ahead when they
// began. They come with the batch whose time runs back: a later start knows no more of that.
func (m *Machine) keepWaits(restored []recovery.Queue) {
	for _, r := range restored {
		if r.Due != 0 || r.SharesFrom != 0 {
			m.open.ops.PutQueue(m.definition(m.queues.of(r.Index)))
		}
		for _, s := range r.Shares {
			if s.HeldUntil != 0 || s.Due != 0 {
				m.open.ops.PutShare(s, false)
			}
		}
	}
}

// Turn begins a round of calls at a moment in Unix milliseconds, and the same on a clock that never
// jumps, by which leases and waits end. What is due by now happens: expired packets go, delayed and
// leased ones come back, waits end. The Tx is valid until the next Turn.
func (m *Machine) Turn(now, steady int64, space storage.Space) *Tx {
	m.space = space
	m.ix.SetClock(steady)
	jump := now - steady - m.offset
	if m.begun == 0 {
		m.begun, jump = now, -m.behind
		m.spendRates()
	}
	m.offset = now - steady
	m.tx = Tx{m: m, now: now, steady: steady}
	m.told = emptied(m.told, keepEvents)
	m.tellJump(jump)
	m.tellStorage()
	m.pushTimes.note(m.marks, now)
	m.forget()
	m.tx.advance()
	m.settle()
	return &m.tx
}

// Stood says that the steady clock has stood still for some milliseconds since the last Turn.
func (m *Machine) Stood(ms int64) { m.offset += ms }

// forget gives back the memory that a large call has left.
func (m *Machine) forget() {
	m.copied = emptied(m.copied, keepCopied)
	m.scratch = emptied(m.scratch, keepScratch)
	if cap(m.patched) > keepPatched {
		m.patched = nil
	}
	if cap(m.fetched) > keepScratch {
		m.fetched, m.missing, m.missed, m.found = nil, nil, nil, Found{}
	}
}

// Take returns what the calls since the last Take changed, nil if that is nothing. Done must follow
// before the next Take.
func (m *Machine) Take() *Batch {
	m.keepDues()
	m.leaveOrigins()
	t := m.open
	empty := t.ops.Len() == 0 && !t.must
	if empty && m.marks.NextSeq <= m.noted.NextSeq && m.marks.LowSeq >= m.noted.LowSeq {
		m.tellAll(&t.events)
		if t.used() {
			t.reset() // all that filled it has cancelled itself
			t.begin(m.marks)
		}
		return nil
	}
	t.ops.SetMarks(m.note(empty))
	t.ops.MustWrite()
	m.onWay, m.open, m.spare = t, m.spare, nil
	m.open.begin(m.marks)
	return t.ops
}

// idsAhead is how many ids of each end a batch without anything else has no start give out again.
const idsAhead = 1000

// note returns the marks that a batch writes. Ids of packets that were pushed and popped between
// two batches are not in any: the marks alone tell of them, ahead, so that not each such push is
// written.
func (m *Machine) note(ahead bool) content.Marks {
	next := m.marks
	if ahead {
		next.NextSeq, next.LowSeq = next.NextSeq+idsAhead, next.LowSeq-idsAhead
	}
	next.NextSeq, next.LowSeq = max(next.NextSeq, m.noted.NextSeq), min(next.LowSeq, m.noted.LowSeq)
	m.noted = next
	return next
}

// keepDues notes when the next takes of slow rates are due, with the batch that took.
func (m *Machine) keepDues() {
	m.ix.Charged(func(id index.QueueID, of index.RateOf, name string, due index.TakeDue) {
		switch q := m.queues.of(id); {
		case m.isGone(q):
		case of == index.OfShare:
			if was := q.shares.byName[name]; was != nil {
				s := *was
				s.Due, s.DueGap = due.At, due.Gap
				m.keepShare(q, &s)
			}
		case of == index.OfShares:
			if m.open.must = true; q.from <= m.tx.steady { // else it was a group or a cost, and not the rate
				m.setFrom(q, 0)
			}
		case q.due != due:
			q.due, q.stale = due, true
			m.define(q)
		}
	})
}

// Done says that the batch of the last Take is on disk.
func (m *Machine) Done() {
	m.tellAll(&m.onWay.events)
	m.onWay.reset()
	m.spare, m.onWay, m.stuck = m.onWay, nil, false
}

// Stuck says that the batch of the last Take finds no room on the disk. Until Done every call that
// touches data is refused with ErrStopped.
func (m *Machine) Stuck() { m.stuck = true }

// Close lets every call from now on return ErrClosed, and prepares the last batch for Take. It
// returns true if there is another one.
func (m *Machine) Close() (more bool) {
	m.closing = true
	m.saveCounters()
	return len(m.counted) > 0 && m.open.full(m.limits)
}

// Work does a slice of what nobody waits for: empty queues end, what was dropped is deleted, queues
// follow new defaults, and the table grows by which calls find packets by their ids. It returns
// true if there is more.
func (m *Machine) Work() (more bool) {
	m.lookAtAlerts()
	if m.stuck || m.open.full(m.limits) {
		return false
	}
	more = m.evictDue()
	more = m.sweep() || more
	more = m.saveCounters() || more
	more = m.followDefaults() || more
	more = m.redate() || more
	m.identify = m.identify && m.ix.BuildIdentities(PrepareSlice)
	more = m.identify || more
	return more
}

// Next is how many milliseconds after the last Turn the next must come, whatever clients do. While
// the last batch is stuck the driver tries that again at its own pace.
func (m *Machine) Next() int64 {
	switch {
	case m.stuck && len(m.parked) > 0: // waits end, and nothing else happens
		return max(1, m.parked[0].until-m.tx.steady)
	case m.stuck:
		return math.MaxInt64
	case m.space.Level == storage.Stop:
		return spaceCheck
	case len(m.redated)+len(m.missedEvents) > 0, len(m.dirty)+len(m.dirtyConns) > 0 && !m.refusesDelivery():
		return 0 // for Work, tellMissed, or settle had done enough
	}
	now, steady, wait := m.tx.now, m.tx.steady, int64(math.MaxInt64)
	if due, ok := m.ix.Wait(now, steady); ok {
		wait = min(wait, due, wallCheck)
	}
	if due, ok := m.names.Deadline(); ok {
		wait = min(wait, due-now, wallCheck)
	}
	if len(m.counted) > 0 {
		wait = min(wait, m.countersAt-steady)
	}
	if len(m.parked) > 0 {
		wait = min(wait, m.parked[0].until-steady)
	}
	if len(m.queues.idle) > 0 {
		wait = min(wait, m.queues.idle[0].emptied+maxIdleTime-now)
	}
	if len(m.alerts.queues) > 0 {
		wait = min(wait, m.alerts.at-steady)
	}
	if max(m.space.Level, m.space.Memory.Level, m.disk.told, m.memory.told) != storage.Normal {
		wait = min(wait, spaceCheck)
	}
	return max(0, wait) // 0: a slice of what was due is done
}

// advance does what is due by now: expired packets go, delayed and leased ones come back, waits
// end. A slice of that happens in each Turn: a million that are due together would keep others out
// for long, and may as well end a little later.
func (tx *Tx) advance() {
	m := tx.m
	defer m.endWaits() // last, as who fills a batch gets what is ready now
	if m.stuck {
		return
	}
	m.expireNames(tx.now)
	for range advanceSlice {
		if m.open.halfFull(m.limits) {
			return
		}
		e, ok := m.ix.Advance(tx.now, tx.steady)
		if !ok {
			return
		}
		m.happened(e)
	}
}
