package model

import (
	"cmp"
	"slices"
	"strconv"
)

// filter is a condition for a tag of packets.
type filter struct{ tag, op, value string }

// accepts says whether a packet has such a tag.
func (f filter) accepts(p *packet) bool {
	has, ok := p.tags[f.tag].(string)
	order := cmp.Compare(has, f.value)
	a, failed := strconv.ParseInt(has, 10, 64)
	if b, err := strconv.ParseInt(f.value, 10, 64); err == nil && failed == nil {
		order = cmp.Compare(a, b)
	}
	ops := map[int][]string{-1: {"lt", "le", "ne"}, 0: {"eq", "le", "ge"}, 1: {"gt", "ge", "ne"}}
	return ok && slices.Contains(ops[order], f.op)
}

// accepts says whether a packet matches as many filters of a take as it must.
func (c call) accepts(p *packet) bool {
	n := 0
	for _, f := range c.filters {
		if f.accepts(p) {
			n++
		}
	}
	return n >= int(c.number("ANY", int64(len(c.filters))))
}
