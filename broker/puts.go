package broker

import (
	"github.com/holdfast-queue/holdfast/storage/content"
)

// puts finds the operation by which a batch puts a packet. New packets get the next sequences at
// either end, so a slice for each end finds almost all of them.
type puts struct {
	firstSeq uint64  // the next sequence at the newest end when the batch was opened
	firstLow uint64  // and at the oldest
	up       []int32 // operations by sequence-firstSeq; -1 where the sequence is no packet's
	down     []int32 // by firstLow-sequence
	replaced map[content.PacketID]int32
}

// add notes the operation that puts a packet.
func (p *puts) add(id content.PacketID, op int) {
	switch {
	case id.Seq >= p.firstSeq:
		p.up = setAt(p.up, int(id.Seq-p.firstSeq), int32(op), -1)
	case id.Seq <= p.firstLow:
		p.down = setAt(p.down, int(p.firstLow-id.Seq), int32(op), -1)
	default:
		if p.replaced == nil {
			p.replaced = make(map[content.PacketID]int32)
		}
		p.replaced[id] = int32(op)
	}
}

// setAt sets s[i], and what is missing before it to a filler.
func setAt[T any](s []T, i int, v, filler T) []T {
	for len(s) <= i {
		s = append(s, filler)
	}
	s[i] = v
	return s
}

// find returns the operation that puts the packet; false if no operation of this batch does.
func (p *puts) find(id content.PacketID) (op int, ok bool) {
	at := int32(-1)
	if i := id.Seq - p.firstSeq; i < uint64(len(p.up)) { // a lower sequence wraps around
		at = p.up[i]
	} else if i := p.firstLow - id.Seq; i < uint64(len(p.down)) {
		at = p.down[i]
	} else if len(p.replaced) > 0 {
		if op, ok := p.replaced[id]; ok {
			at = op
		}
	}
	return int(at), at >= 0
}
