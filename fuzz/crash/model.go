package crash

import (
	"cmp"
	"slices"
)

// model is what a queue must hold: its packets, the oldest first. It is slow and simple on purpose.
type model []packet

// pop takes the best packet and all that have its key, in the order of a reply
// (netproto/pinpriq/PROTOCOL.md, "pop").
func (m *model) pop() []packet {
	best := -1
	for i, p := range *m {
		if p.prio > 0 && (best < 0 || p.prio <= (*m)[best].prio) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	selected := (*m)[best]
	group := []packet{selected}
	for i, p := range slices.Backward(*m) { // the newest first
		if p.key == selected.key && i != best {
			group = append(group, p)
		}
	}
	slices.SortStableFunc(group[1:], func(a, b packet) int { return cmp.Compare(rank(a.prio), rank(b.prio)) })
	*m = slices.DeleteFunc(*m, func(p packet) bool { return p.key == selected.key })
	return group
}

// rank sorts priority 0 behind all others.
func rank(prio uint8) int {
	if prio == 0 {
		return 256
	}
	return int(prio)
}

// drain returns the replies that emptying the queue must give: pops until there is nothing to
// select, then for each group key what is left under it (see drainer.empty).
func (m model) drain(groups int) (replies [][]ID) {
	for {
		group := m.pop()
		if group == nil {
			break
		}
		replies = append(replies, ids(group))
	}
	for g := range groups {
		var left []ID
		for _, p := range slices.Backward(m) {
			if p.key == keyOf(g) {
				left = append(left, p.id)
			}
		}
		if len(left) > 0 {
			replies = append(replies, left)
		}
	}
	return replies
}

func ids(group []packet) []ID {
	all := make([]ID, len(group))
	for i, p := range group {
		all[i] = p.id
	}
	return all
}
