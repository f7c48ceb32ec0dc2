package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// expired is garbage that a start has found: packets of a queue whose time was over. The index does
// not know them, so a walk of the store finds them, a slice at a time.
type expired struct {
	recovery.Expired
	q    *queue             // nil: its definition is gone
	at   int64              // of the start, Unix milliseconds
	held []content.PacketID // that the index knows
}

// loadExpired gives Work the packets that had expired at the start.
func (m *Machine) loadExpired(state *recovery.State) {
	for _, found := range state.Expired {
		x := &expired{Expired: found, at: state.Now, held: state.Held}
		if found.Queue != 0 {
			x.q = m.queues.of(found.Queue)
			x.q.expired = x
		}
		m.garbage = append(m.garbage, x)
	}
}

// sweep deletes those among the next n packets that the store shows. Where it cannot read them they
// stay, with their queue: the next start tries again.
func (x *expired) sweep(m *Machine, n int) (looked int, over bool) {
	if x.Count == 0 { // their queue was dropped, and has swept them
		return 0, true
	}
	if m.ix.BuildIdentities(PrepareSlice) { // first, so that knows is quick
		return n, false
	}
	next, more, err := m.store.Some(x.From, n, func(id content.PacketID, p *content.Meta) {
		looked++
		if _, held := slices.BinarySearchFunc(x.held, id, content.PacketID.Compare); p.Expired(x.at) && !held && !m.knows(id, p) {
			m.open.ops.Delete(id, content.Removed{Size: int(p.Size), Expires: true, Large: p.Large}) // perhaps one that came since, and is gone
		}
	})
	if err != nil {
		m.log.Warn("packets that have expired cannot be read, and stay on the disk", "error", err)
		return looked, true
	}
	if x.From = next; !more || next.Compare(x.To) > 0 {
		x.Count = 0
	}
	if x.Count == 0 && x.q != nil {
		x.q.expired = nil
		m.listIdle(x.q)
	}
	return max(1, looked), x.Count == 0
}
