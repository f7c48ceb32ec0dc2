package model

import (
	"cmp"
	"slices"
	"strconv"
)

// filter is a condition for a tag of packets.
type filter struct{ tag, op, value string }

// accepts says whether a packet has such a tag. A queue may have an order of its values.
func (f filter) accepts(p *packet, orders map[string][]string) bool {
	has, ok := p.tags[f.tag].(string)
	order := cmp.Compare(has, f.value)
	a, failed := strconv.ParseInt(has, 10, 64)
	if b, err := strconv.ParseInt(f.value, 10, 64); err == nil && failed == nil {
		order = cmp.Compare(a, b)
	}
	if values := orders[f.tag]; values != nil {
		order = cmp.Compare(slices.Index(values, has), slices.Index(values, f.value))
		ok = ok && slices.Contains(values, has) // it may be older than the order
	}
	ops := map[int][]string{-1: {"lt", "le", "ne"}, 0: {"eq", "le", "ge"}, 1: {"gt", "ge", "ne"}}
	return ok && slices.Contains(ops[order], f.op)
}

// accepts says whether a packet matches as many filters of a command as it must.
func (s *Server) accepts(c call, p *packet) bool {
	n := 0
	for _, f := range c.filters {
		if f.accepts(p, s.settings(p.queue).orders) {
			n++
		}
	}
	if share, given := c.options["SHARE"]; given && s.queues[p.queue].shareOf(p) != share {
		return false
	}
	return n >= int(c.number("ANY", int64(len(c.filters))))
}

// checkFilter refuses a filter with a value that the order of a queue lacks.
func (s *Server) checkFilter(c call, queue string) {
	for _, f := range c.filters {
		if values := s.settings(queue).orders[f.tag]; values != nil && !slices.Contains(values, f.value) {
			panic(Err("ERR"))
		}
	}
}

// inOrder says whether the order of a queue has the values of packets' tags.
func (q settings) inOrder(packets []*packet) bool {
	for _, p := range packets {
		for tag, value := range p.tags {
			if values := q.orders[tag]; values != nil && !slices.Contains(values, value.(string)) {
				return false
			}
		}
	}
	return true
}
