package resp

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
)

// filter is what chooses packets by their share and their tags: SHARE name, FILTER tag op value,
// several times, and MATCH ALL or MATCH ANY n.
type filter struct {
	share []byte // nil: not given
	terms []broker.Term
	match match
}

// match is what MATCH says.
type match struct {
	least int64 // see broker.Filter
}

// operators are the words for the comparisons, by broker.Op.
var operators = [...]string{
	broker.Equal: "eq", broker.NotEqual: "ne", broker.Less: "lt", broker.LessOrEqual: "le", broker.Greater: "gt", broker.GreaterOrEqual: "ge",
}

// termSteps is how many steps of a request it takes to compare a set of tags with a term.
const termSteps = 5

// useFilter takes off the steps of the present request what a filter costs in some queues. It
// returns an error if that is too much, or one of them cannot be asked with it.
func (s *session) useFilter(tx *broker.Tx, f *broker.Filter, queues ...[]byte) error {
	if f == nil {
		return nil
	}
	sets, err := tx.CheckFilter(queues, f)
	if err != nil {
		return err
	}
	if s.steps -= sets * len(f.Terms) * termSteps; s.steps < 0 {
		return failure(fmt.Sprintf("ERR FILTER: too costly: %d terms and %d sets of tags, expected at most %d comparisons of one with the other "+
			"in a request; use fewer terms, or name fewer queues", len(f.Terms), sets, maxSteps/termSteps))
	}
	return nil
}

// add reads what follows FILTER, and returns the arguments behind that.
func (f *filter) add(args [][]byte) (rest [][]byte) {
	switch {
	case len(args) < 3:
		refuse("ERR FILTER: expected a tag, an operator and a value behind it")
	case len(args[0]) == 0:
		refuse("ERR FILTER: expected a tag with a name that is not empty")
	case len(f.terms) == broker.MaxTerms:
		refuse("ERR FILTER: expected at most %d of them", broker.MaxTerms)
	}
	f.terms = append(f.terms, broker.Term{Tag: string(args[0]), Op: operatorArg(args[1]), Value: string(args[2])})
	bytes := 0
	for _, t := range f.terms {
		bytes += len(t.Tag) + len(t.Value)
	}
	if bytes > broker.MaxTagBytes {
		refuse("ERR FILTER: expected tags and values of at most %d bytes together", broker.MaxTagBytes)
	}
	return args[3:]
}

func operatorArg(arg []byte) broker.Op {
	op := slices.IndexFunc(operators[:], func(word string) bool { return is(arg, word) })
	if op < 0 {
		refuse("ERR FILTER: expected the operator to be one of %s, got %q", strings.Join(operators[:], ", "), quoted(arg))
	}
	return broker.Op(op)
}

// read reads what follows MATCH, and returns the arguments behind that.
func (m *match) read(args [][]byte, low, high int64) (rest [][]byte) {
	switch {
	case len(args) > 0 && is(args[0], "all"):
		return args[1:]
	case len(args) > 1 && is(args[0], "any"):
		m.least = numberArg("MATCH ANY", args[1], low, high)
		return args[2:]
	}
	panic(failure("ERR MATCH: expected ALL, or ANY and a number, behind it"))
}

// check looks at FILTER and MATCH together.
func (f *filter) check() {
	if n := len(f.terms); n > 0 && f.match.least > int64(n) {
		refuse("ERR MATCH ANY: expected a number from 1 to %d, of the FILTERs, got \"%d\"", n, f.match.least)
	}
}

// broker is the filter that was given; nil if none was. It has its own copy of the arguments.
func (f *filter) broker() *broker.Filter {
	if len(f.terms) == 0 && f.share == nil {
		return nil
	}
	return &broker.Filter{Terms: f.terms, Least: int(f.match.least), Share: bytes.Clone(f.share)}
}

// filterWords is a filter as a request has it; nothing for none.
func filterWords(f *broker.Filter) (words []string) {
	if f == nil {
		return nil
	}
	if f.Share != nil {
		words = append(words, "SHARE", string(f.Share))
	}
	for _, t := range f.Terms {
		words = append(words, "FILTER", t.Tag, operators[t.Op], t.Value)
	}
	if f.Least > 0 {
		words = append(words, "MATCH", "ANY", strconv.Itoa(f.Least))
	}
	return words
}
