package resp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
)

// filterOptions are what chooses packets by their tags: FILTER tag op value, several times, and
// MATCH ALL or MATCH ANY n.
var filterOptions = oneOf(optFilter, optTerms)

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

// addTerm reads what follows FILTER, and returns the arguments behind that.
func (o *options) addTerm(args [][]byte) (rest [][]byte, err error) {
	if len(args) < 3 {
		return nil, failure("ERR FILTER: expected a tag, an operator and a value behind it")
	}
	tag, value := args[0], args[2]
	switch {
	case len(tag) == 0:
		return nil, failure("ERR FILTER: expected a tag with a name that is not empty")
	case len(o.filter.Terms) == broker.MaxTerms:
		return nil, failure(fmt.Sprintf("ERR FILTER: expected at most %d of them", broker.MaxTerms))
	}
	op, err := operatorArg(args[1])
	if err != nil {
		return nil, err
	}
	if o.termBytes += len(tag) + len(value); o.termBytes > broker.MaxTagBytes {
		return nil, failure(fmt.Sprintf("ERR FILTER: expected tags and values of at most %d bytes together", broker.MaxTagBytes))
	}
	o.filter.Terms = append(o.filter.Terms, broker.Term{Tag: string(tag), Op: op, Value: string(value)})
	return args[3:], nil
}

func operatorArg(arg []byte) (broker.Op, error) {
	for op, word := range operators {
		if is(arg, word) {
			return broker.Op(op), nil
		}
	}
	return 0, failure(fmt.Sprintf("ERR FILTER: expected the operator to be one of %s, got %q", strings.Join(operators[:], ", "), quoted(arg)))
}

// setLeast reads what follows MATCH, and returns the arguments behind that.
func (o *options) setLeast(args [][]byte) (rest [][]byte, err error) {
	switch {
	case len(args) > 0 && is(args[0], "all"):
		return args[1:], nil
	case len(args) > 1 && is(args[0], "any"):
		n, err := numberArg("MATCH ANY", args[1], 1, broker.MaxTerms)
		o.filter.Least = int(n)
		return args[2:], err
	}
	return nil, failure("ERR MATCH: expected ALL, or ANY and a number, behind it")
}

// checkFilter looks at FILTER and MATCH together.
func (o *options) checkFilter() error {
	switch n := len(o.filter.Terms); {
	case n == 0 && o.has(optTerms):
		return failure("ERR MATCH: expected FILTER with it")
	case o.filter.Least > n:
		return failure(fmt.Sprintf("ERR MATCH ANY: expected a number from 1 to %d, of the FILTERs, got \"%d\"", n, o.filter.Least))
	}
	return nil
}

// tagFilter is the filter that was given; nil if none was. It has its own copy of the arguments.
func (o *options) tagFilter() *broker.Filter {
	if !o.has(optFilter) {
		return nil
	}
	return &broker.Filter{Terms: o.filter.Terms, Least: o.filter.Least}
}

// filterWords is a filter as a request has it; nothing for none.
func filterWords(f *broker.Filter) (words []string) {
	if f == nil {
		return nil
	}
	for _, t := range f.Terms {
		words = append(words, "FILTER", t.Tag, operators[t.Op], t.Value)
	}
	if f.Least > 0 {
		words = append(words, "MATCH", "ANY", strconv.Itoa(f.Least))
	}
	return words
}
