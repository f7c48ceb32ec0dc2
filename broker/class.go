package broker

import (
	"encoding/binary"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// The classes without a filter, which are always there.
const (
	anyClass index.Class = iota
	narrowClass
	claimClass
	narrowClaimClass
)

// plainClass is the class of those who take any packet.
func plainClass(narrow bool) index.Class {
	if narrow {
		return narrowClass
	}
	return anyClass
}

// batchOf is what those have in common who fill batches from a name: of so many packets, in so many
// milliseconds.
type batchOf struct {
	name  []byte
	least int
	fill  int64
}

// joinClass makes c one of those who take by a filter or fill batches, or returns it to the class
// of those who do neither.
func (m *Machine) joinClass(c *Conn, f *Filter, b batchOf, claims bool) {
	m.leaveClass(c)
	if f != nil && len(f.Terms) == 0 && f.Share == nil {
		f = nil
	}
	if f == nil && b.least == 0 {
		if claims {
			c.class += claimClass
		}
		return
	}
	m.keyScratch = m.keyScratch[:0]
	if claims {
		m.keyScratch = append(m.keyScratch, 'c')
	}
	if b.least > 0 { // these are of one name: so it is known how many of them fill a batch there
		m.keyScratch = binary.AppendUvarint(append(m.keyScratch, 'f', m.tx.db), uint64(b.least))
		m.keyScratch = binary.AppendUvarint(binary.AppendUvarint(m.keyScratch, uint64(b.fill)), uint64(len(b.name)))
		m.keyScratch = append(m.keyScratch, b.name...)
	}
	m.keyScratch = f.appendKey(m.keyScratch, c.delivery.Fits16)
	n, known := m.classOf[string(m.keyScratch)]
	if !known {
		k := &class{narrow: c.delivery.Fits16, claims: claims, filter: f, key: string(m.keyScratch), least: b.least}
		if b.least == 0 { // who fills a batch may begin to when another one ends
			k.found.By = f.foundBy()
			switch {
			case claims && f.Share == nil:
				k.found.Gate = claimGate
			case claims:
				k.found.Gate = shareGate
			}
		}
		if last := len(m.freeClasses) - 1; last >= 0 {
			n, m.freeClasses = m.freeClasses[last], m.freeClasses[:last]
			m.classes[n] = k
		} else {
			n = index.Class(len(m.classes))
			m.classes = append(m.classes, k)
		}
		m.classOf[k.key] = n
	}
	m.classes[n].members++
	c.class = n
}

// leaveClass returns c to the class of those who take one packet, without a filter.
func (m *Machine) leaveClass(c *Conn) {
	if k := m.classes[c.class]; k.key != "" {
		if k.members--; k.members == 0 {
			delete(m.classOf, k.key)
			m.classes[c.class] = nil
			m.freeClasses = append(m.freeClasses, c.class)
		}
	}
	c.class = plainClass(c.delivery.Fits16)
}

// appendKey appends what is equal for equal filters.
func (f *Filter) appendKey(dst []byte, narrow bool) []byte {
	if narrow {
		dst = append(dst, 'n')
	}
	if f == nil {
		return dst
	}
	if f.Share != nil {
		dst = append(binary.AppendUvarint(append(dst, 's'), uint64(len(f.Share))), f.Share...)
	}
	dst = binary.AppendUvarint(append(dst, 't'), uint64(f.Least))
	for _, t := range f.Terms {
		dst = append(dst, byte(t.Op))
		dst = content.AppendTags(dst, []PacketTag{{Name: t.Tag, Value: t.Value}})
	}
	return dst
}

// filters says that c waits for what a filter accepts.
func (m *Machine) filters(c *Conn) bool { return m.classes[c.class].filter != nil }

// selectionOf returns what the class selects from a queue.
func (k *class) selectionOf(q *queue) index.Selection {
	if k.queue != q || k.settings != q.settings {
		k.queue, k.settings = q, q.settings
		k.selection = index.Selection{Fits16: k.narrow, Filter: k.filter.forQueue(q), Share: k.filter.share(), Claims: k.claims, Limits: true}
	}
	return k.selection
}

// Those who claim and may sleep stand behind gates that a limit shuts, as they would be asked in
// vain. Where there are no shares, those who wait for one are let through, and told so.
const (
	shareGate = 1 + iota // for those who wait for a share
	claimGate            // for the others
	openGates
)

// openTo returns which gates of a queue are open: those below it.
func (m *Machine) openTo(q *queue) int {
	switch {
	case !m.ix.AtLimit(q.ix):
		return openGates
	case !m.sharedOut(q):
		return claimGate
	}
	return shareGate
}

// wake lets those be asked again who may take what has come to lanes of a queue since the last
// call. With cut that goes on in the next turn.
func (m *Machine) wake(w *waiters) (cut bool) {
	list := w.lists[consumerRole]
	anew, done := m.ix.TellFresh(w.queue.ix, func(at uint64, share, tags string) bool {
		m.keyScratch = appendShare(m.keyScratch[:0], share)
		m.dispatch.Wake(list, m.keyScratch, at)
		for name, value := "", ""; tags != ""; {
			name, value, tags = content.CutTag(tags)
			m.keyScratch = appendTag(m.keyScratch[:0], name, value)
			m.dispatch.Wake(list, m.keyScratch, at)
		}
		m.tx.settled++
		return m.tx.settled < maxSettled
	})
	if anew {
		m.dispatch.AskAnew(list)
	}
	return !done
}

// nextSubscriber returns who of those that wait for a name gets the next packet of its queue; false
// if none can take it. Those with a filter are asked about the lanes that got packets since they
// were asked last. With cut that goes on in the next turn.
func (m *Machine) nextSubscriber(w *waiters) (s index.SubscriberID, ok, cut bool) {
	q := w.queue
	if _, some := m.ix.Best(q.ix, index.Selection{Limits: true}); !some {
		return 0, false, false
	}
	if w.filtered > 0 && m.dispatch.HasKeyed(w.lists[consumerRole]) && m.wake(w) {
		return 0, false, true
	}
	s, ok = m.dispatch.Waiting(w.lists[consumerRole], m.openTo(q), func(c index.Class, asked uint64) (uint64, bool) {
		k, ok := m.classes[c], false
		if m.passWide(q, k.narrow); k.filter == nil {
			_, ok = m.ix.Best(q.ix, k.selectionOf(q))
		} else {
			lanes, whole := m.ix.FreshAsks(q.ix, k.selectionOf(q), asked)
			if (whole || k.filter.Share != nil) && m.checkFilterShare(q, k.filter) != nil {
				return asked, true // it will be told that there are no shares, or too many
			}
			if cut = lanes > 0 && k.least == 0 && m.settledEnough(); cut {
				return asked, true // nobody is asked now
			}
			m.chargeFilter(q, k.filter, lanes)
			asked, ok = m.ix.Fresh(q.ix, k.selectionOf(q), asked)
			if k.least > 0 && m.ix.HasLimits(q.ix) && m.checkFilter(q, k.filter) == nil {
				ok = true // with each claim that ends it may have a batch
			}
		}
		return asked, ok && (k.least == 0 || m.mayFill(q, k))
	})
	return s, ok, cut
}

// chargeFilter counts what a filter costs that is asked about lanes of a queue. To pass over a
// share takes as long as some terms.
func (m *Machine) chargeFilter(q *queue, f *Filter, lanes int) {
	looks := len(f.Terms)
	if m.sharedOut(q) {
		looks += 3
	}
	m.tx.settled += max(1, lanes*looks)
}

// settledEnough says that settle goes on in the next turn.
func (m *Machine) settledEnough() bool {
	return m.tx.settled >= maxSettled || m.open.full(m.limits)
}

// mayFill says that a queue has a batch for a class, or something and nobody of the class waits for
// more: then the first of them begins to.
func (m *Machine) mayFill(q *queue, k *class) bool {
	if k.filter != nil {
		m.chargeFilter(q, k.filter, m.ix.LanesIn(q.ix, k.filter.Share))
	}
	if m.checkFilter(q, k.filter) != nil {
		return true // it will be told
	}
	n := m.ix.Ready(q.ix, k.selectionOf(q), k.least)
	return n == k.least || n > 0 && k.filling == 0
}

// passWide counts what it costs to pass over the wide packets of a queue, and logs that.
func (m *Machine) passWide(q *queue, narrow bool) {
	if narrow {
		m.tx.settled += min(m.ix.WideLanes(q.ix), MaxLanes)
	}
	m.logWide(q, narrow)
}

// logWide logs, once a queue, that who takes narrow packets alone leaves some in it.
func (m *Machine) logWide(q *queue, narrow bool) {
	if narrow && !q.wideLogged && m.ix.WideLanes(q.ix) > 0 {
		q.wideLogged = true
		m.log.Warn("packets stay queued: their keys or payloads are too long for the protocol of a consumer",
			"queue", q.entry.Name(), "limit", MaxNarrow)
	}
}
