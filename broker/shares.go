package broker

import "github.com/holdfast-queue/holdfast/index"

// ShareRow is a share of a queue as it is.
type ShareRow struct {
	Share
	Ready, Claimed int   // packets
	Since          int64 // about when the oldest ready one was pushed, Unix milliseconds; 0 if there is none
	// Why says in words what keeps it from giving packets to claims, and Until when that ends by
	// itself, in Unix milliseconds. Empty: nothing does; 0: that is not known.
	Why   string
	Until int64
}

// ShareLook is a look at the shares of a queue, in slices: at Count of them, behind After.
type ShareLook struct {
	After int64 // of the row before; 0: the beginning, or afterwards the end
	Count int
	Rows  []ShareRow // what it has found
}

const (
	// behindOwn is where ShareLook.After is behind the shares that had something of their own: above
	// ownBits is the last number of these, and below it the next share of the index.
	behindOwn = 1 << 62
	ownBits   = 32
	// shareSlice is what a slice of a ShareLook may cost: some milliseconds.
	shareSlice = 4000
	shareCost  = 10 // of a priority where the oldest packet may be
)

// Shares makes a slice of a look. Those that have something of their own come first, by and by as
// they got it, whether they have packets or not; then the others, each as long as it has packets.
// ErrUnknownQueue.
func (tx *Tx) Shares(name []byte, l *ShareLook) (more bool, err error) {
	q, err := tx.open(name, known)
	if err != nil {
		return false, err
	}
	steps := 0
	for more = true; more && steps < shareSlice; {
		var cost int
		cost, more = tx.m.walkShares(q, l)
		steps += cost
	}
	tx.looked += steps
	return more, nil
}

// walkShares looks at the next share.
func (m *Machine) walkShares(q *queue, l *ShareLook) (cost int, more bool) {
	name, ok := m.nextShare(q, l)
	if !ok {
		return 1, false
	}
	row, lanes, cost := m.shareRow(q, name) // 0 lanes: it is there for its rate alone
	if row.Ready+row.Claimed > 0 || !row.Empty() || name != "" && lanes > 0 {
		l.Rows = append(l.Rows, row)
	}
	return cost, len(l.Rows) < l.Count
}

// nextShare goes on to the next share.
func (m *Machine) nextShare(q *queue, l *ShareLook) (name string, ok bool) {
	if l.After < behindOwn {
		for at, _ := q.shares.find(uint64(l.After) + 1); at < len(q.shares.all); at++ {
			if s := q.shares.all[at]; !s.Empty() {
				l.After = int64(s.Number)
				return string(s.Name), true
			}
		}
		l.After = behindOwn + int64(min(q.shares.last, behindOwn>>ownBits-1))<<ownBits
	}
	last := uint64(l.After-behindOwn) >> ownBits
	for next := uint32(l.After); ; {
		if name, next, ok = m.ix.NextShare(q.ix, next); !ok {
			l.After = 0
			return "", false
		}
		l.After = l.After>>ownBits<<ownBits + int64(next)
		if own := q.shares.byName[name]; own == nil || own.Number > last { // else it was there already
			return name, true
		}
	}
}

// shareRow is a share as it is, its lanes, and what it cost to look.
func (m *Machine) shareRow(q *queue, name string) (row ShareRow, lanes, cost int) {
	row.Name = []byte(name)
	if own := q.shares.byName[name]; own != nil {
		if row.Share = *own; len(settingsOf(q).ShareBy) == 0 { // it has ended, and Work says so on disk
			row.HeldUntil = 0
		}
	}
	row.Weight = max(1, row.Weight)
	ready, claimed, lanes := m.ix.ShareCounts(q.ix, name)
	looked := m.ix.EldestOf(q.ix, name, middle, surveyPriorities, func(p index.Packet) {
		if at := m.pushTimes.at(p.Identity); row.Since == 0 || at < row.Since {
			row.Since = at
		}
	})
	row.Ready, row.Claimed = ready, claimed
	if s := settingsOf(q); s.PauseOut {
		row.Why, row.Until = "queue is paused", s.PauseOutUntil
	} else if h, ok := m.ix.HeldShare(q.ix, name); ok {
		if row.Why = q.says(h, ""); h.Wait+h.Rest > 0 {
			row.Until = m.tx.now + h.Wait + h.Rest
		}
	}
	return row, lanes, 1 + lanes + shareCost*looked
}
