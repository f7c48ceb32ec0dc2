package client

import (
	"cmp"
	"fmt"
	"regexp"
)

// Filter selects packets by a tag: those for which *tag op value* is true. It is an option of Pop,
// Claim, Consume, List, Purge, Harvest, Redrive and MoveAll. The server orders values as the queue
// declares it, else as numbers if both are, else as bytes. A packet without the tag never matches.
type Filter struct{ Tag, Op, Value string }

// Where makes a filter. The operator is one of = != < <= > >=.
func Where(tag, op, value string) Filter { return Filter{tag, op, value} }

var filterText = regexp.MustCompile(`(?s)^([^=!<>]+)(!=|<=|>=|=|<|>)(.*)$`)

// ParseFilter reads a filter such as class<=standard. The error is ErrInvalid.
func ParseFilter(text string) (Filter, error) {
	m := filterText.FindStringSubmatch(text)
	if m == nil {
		return Filter{}, fmt.Errorf("%w: expected a filter such as class<=standard, with one of = != < <= > >=, got %q", ErrInvalid, text)
	}
	return Where(m[1], m[2], m[3]), nil
}

// String returns what ParseFilter reads.
func (f Filter) String() string { return f.Tag + f.Op + f.Value }

func (f Filter) add(r *request) {
	r.args = append(r.args, "FILTER", f.Tag, cmp.Or(operators[f.Op], f.Op), f.Value)
}

var operators = map[string]string{"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}

// InShare selects the packets of one share of a queue that has share-by: those with that key, or
// that value of the tag. "" is the share of those without. It is an option of the same calls as a
// Filter.
func InShare(name string) Option { return says("SHARE", name) }

// MatchAny selects packets for which n or more of the filters are true. All must be unless given.
func MatchAny(n int) Option { return says("MATCH", "ANY", n) }
