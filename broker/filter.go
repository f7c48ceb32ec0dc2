package broker

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// End is the end of equal priority that a consumer takes from.
type End = index.End

// The two ends. The choice is the consumer's, not the queue's.
const (
	Newest = index.Newest // last pushed first (pinpriq document, section pop)
	Oldest = index.Oldest // first pushed first
)

// Selection says which packets of a queue a consumer takes.
type Selection struct {
	End         End
	Count       int     // how many packets at most; 0 is one, or a whole group, which may be more than an Atomic takes
	Group       bool    // with the selected packet, every other of its key
	WithDetails bool    // the reply has details
	Fits16      bool    // no packet whose key or payload has more than MaxNarrow bytes: it stays queued
	Filter      *Filter // nil: any packet
	MustFind    bool    // ErrNothing, in place of no packets, if there is nothing to take
	Least       int     // ErrFilling, in place of some packets, if there are fewer, see parked.go
	unread      bool    // the caller needs no records
	claims      bool    // what is taken is claimed
}

// A Filter says by their tags which packets are wanted (zkmq document, filters). A packet without
// the tag of a term does not match that.
type Filter struct {
	Terms []Term
	Least int    // how many terms must match; 0: all
	Share []byte // the name of the share that the packets are of; nil: any
}

// share returns the share that a filter names; nil if it may be any.
func (f *Filter) share() []byte {
	if f == nil {
		return nil
	}
	return f.Share
}

// foundBy is what all packets have that a filter takes, as appendShare and appendTag name it.
func (f *Filter) foundBy() (by []string) {
	if f.Share != nil {
		by = append(by, string(appendShare(nil, string(f.Share))))
	}
	for _, t := range f.Terms {
		if t.Op == Equal && (f.Least <= 0 || f.Least >= len(f.Terms)) {
			by = append(by, string(appendTag(nil, t.Tag, t.Value)))
		}
	}
	return by
}

// appendShare names a share.
func appendShare(dst []byte, name string) []byte { return append(append(dst, 's'), name...) }

// appendTag names a value of a tag. Values that may be equal have one name, which others may have.
func appendTag(dst []byte, tag, value string) []byte {
	dst = append(append(append(dst, 't'), tag...), '=')
	if n, ok := integer(value); ok {
		return strconv.AppendInt(dst, n, 10)
	}
	return append(dst, value...)
}

// Term compares a tag with a value: the tag stands at the left. Values are compared by the order
// that the queue declares for the tag, else as integers if both are such, else as bytes.
type Term struct {
	Tag   string
	Op    Op
	Value string
}

// Op is a comparison.
type Op uint8

// The comparisons, as their names say.
const (
	Equal Op = iota
	NotEqual
	Less
	LessOrEqual
	Greater
	GreaterOrEqual
)

// fits reports whether the operator wants c, the result of a cmp.Compare.
func (op Op) fits(c int) bool {
	switch op {
	case Equal:
		return c == 0
	case NotEqual:
		return c != 0
	case Less:
		return c < 0
	case LessOrEqual:
		return c <= 0
	case Greater:
		return c > 0
	}
	return c >= 0
}

// queueFilter is a filter for the packets of one queue.
type queueFilter struct {
	terms []queueTerm // sorted by tag, as the tags of a packet are
	least int
}

type queueTerm struct {
	Term
	order   order // nil: the queue declares none for the tag
	rank    int   // of the value in the order
	number  int64 // what the value says, if it is an integer
	integer bool
}

// forQueue returns the filter for the packets of a queue; nil, which takes all, if there is no
// term.
func (f *Filter) forQueue(q *queue) index.Filter {
	if f == nil || len(f.Terms) == 0 {
		return nil
	}
	c := &queueFilter{make([]queueTerm, len(f.Terms)), f.Least}
	if c.least <= 0 {
		c.least = len(f.Terms)
	}
	for i, term := range f.Terms {
		t := queueTerm{Term: term, order: q.orders[term.Tag]}
		if t.order == nil {
			t.number, t.integer = integer(term.Value)
		} else {
			t.rank = t.order[term.Value]
		}
		c.terms[i] = t
	}
	slices.SortStableFunc(c.terms, func(a, b queueTerm) int { return cmp.Compare(a.Tag, b.Tag) })
	return c.accepts
}

// accepts reports whether the filter takes packets with these tags. It goes over terms and tags
// side by side, and allocates nothing.
func (c *queueFilter) accepts(tags string) bool {
	var name, value string
	met, at := 0, false // at a tag
	for i := range c.terms {
		if met+len(c.terms)-i < c.least {
			return false
		}
		t := &c.terms[i]
		for tags != "" && (!at || name < t.Tag) {
			name, value, tags = content.CutTag(tags)
			at = true
		}
		if at && name == t.Tag && t.accepts(value) {
			met++
		}
	}
	return met >= c.least
}

// accepts reports whether a value of the tag matches.
func (t *queueTerm) accepts(value string) bool {
	if t.order != nil {
		rank := t.order[value]
		return rank != 0 && t.rank != 0 && t.Op.fits(cmp.Compare(rank, t.rank))
	}
	if t.integer {
		if n, ok := integer(value); ok {
			return t.Op.fits(cmp.Compare(n, t.number))
		}
	}
	return t.Op.fits(cmp.Compare(value, t.Value))
}

// integer reads digits with a sign or without. It allocates nothing for other texts.
func integer(s string) (n int64, ok bool) {
	digits := strings.TrimLeft(s, "+-")
	if digits == "" || len(s)-len(digits) > 1 || len(s) > maxInteger {
		return 0, false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// maxInteger is how long a text may be that is compared as an integer.
const maxInteger = 64

// checkFilter returns ErrNotInOrder if a term compares with a value that the queue does not declare
// for its tag; ErrNoShares, ErrManyShares.
func (m *Machine) checkFilter(q *queue, f *Filter) error {
	if f == nil || q == nil {
		return nil
	}
	if err := m.checkFilterShare(q, f); err != nil || q.orders == nil {
		return err
	}
	for _, t := range f.Terms {
		if err := q.checkValue(t.Tag, t.Value); err != nil {
			return err
		}
	}
	return nil
}

// checkFilterShare returns ErrNoShares if a filter names a share of a queue that has none, and
// ErrManyShares if it would be asked about too many.
func (m *Machine) checkFilterShare(q *queue, f *Filter) error {
	switch {
	case f.Share != nil && !m.sharedOut(q):
		return ErrNoShares
	case f.Share == nil && len(f.Terms) > 0 && m.sharedOut(q) && m.ix.Lanes(q.ix) > MaxLanes:
		return ErrManyShares
	}
	return nil
}

// CheckFilter returns how many sets of tags a filter is compared with in some queues, at most.
// ErrNotInOrder if one of them cannot be asked with it, as every call with that would. Whoever asks
// several queues calls it first.
func (tx *Tx) CheckFilter(names [][]byte, f *Filter) (sets int, err error) {
	for _, name := range names {
		q, err := tx.m.findQueue(name)
		if err == nil {
			err = tx.m.checkFilter(q, f)
		}
		if err != nil {
			return 0, err
		}
		if q != nil {
			sets += tx.m.ix.LanesIn(q.ix, f.share()) + 1
		}
	}
	return sets, nil
}
