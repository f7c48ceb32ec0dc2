package broker

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// order is the values that a queue declares for a tag, each with its rank from 1 on.
type order map[string]int

// ordersOf returns the orders that settings declare, by tag; nil if they declare none.
func ordersOf(s *Settings) map[string]order {
	if s == nil || len(s.Orders) == 0 {
		return nil
	}
	orders := make(map[string]order, len(s.Orders))
	for _, declared := range s.Orders {
		o := make(order, len(declared.Values))
		for i, v := range declared.Values {
			o[v] = i + 1
		}
		orders[declared.Tag] = o
	}
	return orders
}

// checkValue returns ErrNotInOrder if the queue declares values for a tag, and this is not one.
func (q *queue) checkValue(tag, value string) error {
	if o := q.orders[tag]; o == nil || o[value] != 0 {
		return nil
	}
	return fmt.Errorf("%w: tag %q, expected one of %s, got %q", ErrNotInOrder, tag, q.declared(tag), value)
}

// maxDeclared is how many bytes of the values of a tag an error repeats, about.
const maxDeclared = 1000

// declared is the values of a tag in words, which the queue declares.
func (q *queue) declared(tag string) (words string) {
	at := slices.IndexFunc(q.settings.Orders, func(o Order) bool { return o.Tag == tag })
	for i, v := range q.settings.Orders[at].Values {
		if i > 0 {
			words += ", "
		}
		if len(words) > maxDeclared {
			return words + "…"
		}
		words += strconv.Quote(v)
	}
	return words
}

// checkTags says whether a queue takes a packet with tags from a client: ErrNotInOrder,
// ErrTooManyLanes. Nothing has changed then.
func (m *Machine) checkTags(q *queue, tags []PacketTag) error {
	if len(tags) == 0 {
		return nil
	}
	for i := range tags {
		if err := q.checkValue(tags[i].Name, tags[i].Value); err != nil {
			return err
		}
	}
	return checkLanes(m.ix.TagSets(q.ix, m.tagBytes(tags)))
}

// checkMove is checkTags for packets that move from one queue to another.
func (m *Machine) checkMove(q, to *queue, packets ...index.Packet) error {
	if q == to {
		return nil
	}
	if n := m.ix.Lanes(to.ix); n+len(packets) > MaxShareLanes {
		for _, p := range packets {
			if m.ix.HasLaneFor(to.ix, p.ID) {
				continue
			}
			if n++; n > MaxShareLanes {
				return m.errShares(to)
			}
		}
	}
	var more map[string]bool // tags that are new to the queue
	for _, p := range packets {
		tags, _ := m.ix.Tags(p.Lane)
		if tags == "" || more[tags] {
			continue
		}
		for rest := tags; rest != "" && to.orders != nil; {
			var name, value string
			name, value, rest = content.CutTag(rest)
			if err := to.checkValue(name, value); err != nil {
				return err
			}
		}
		m.tags = append(m.tags[:0], tags...)
		n, has := m.ix.TagSets(to.ix, m.tags)
		if err := checkLanes(n+len(more), has); err != nil {
			return err
		}
		if !has {
			if more == nil {
				more = make(map[string]bool)
			}
			more[tags] = true
		}
	}
	return nil
}

// checkLanes returns ErrTooManyLanes if a queue with n lanes has no place for another set of tags,
// which it may have.
func checkLanes(n int, has bool) error {
	if has || n < MaxLanes {
		return nil
	}
	return fmt.Errorf("%w, the limit is %d: give a packet tags that others have, or use another queue", ErrTooManyLanes, MaxLanes)
}

// sharedOut says that the packets of a queue are in shares.
func (m *Machine) sharedOut(q *queue) bool { return m.ix.Shares(q.ix) > 0 }

// checkShareBy returns an error if a queue cannot follow a change of share-by: all its lanes would
// be lanes of one share, or would be looked at.
func (m *Machine) checkShareBy(q *queue, s *Settings) error {
	was := string(settingsOf(q).ShareBy)
	if n := m.ix.Lanes(q.ix); m.sharedOut(q) && was != string(s.ShareBy) && n > MaxLanes && !(was == "key" && len(s.ShareBy) == 0) {
		return fmt.Errorf("share-by cannot change now: the queue has packets of %d shares and sets of tags, the limit for that is %d: take some first", n, MaxLanes)
	}
	return nil
}

// errShares says that a queue has no place for more shares.
func (m *Machine) errShares(q *queue) error {
	return fmt.Errorf("%w: its packets have %d shares and sets of tags in them, the limit is %d", ErrFull, m.ix.Lanes(q.ix), MaxShareLanes)
}

// PacketTag is one name and value that a packet carries.
type PacketTag = content.Tag

// tagBytes returns tags as the index has them. It is valid until the next call.
func (m *Machine) tagBytes(tags []PacketTag) []byte {
	m.tags = content.AppendTags(m.tags[:0], tags)
	return m.tags
}
