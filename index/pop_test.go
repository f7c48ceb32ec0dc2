package index

// Pop removes the selected packet, with its group if s.Group is set, and appends them to dst. An
// owner of an index takes so.
func (x *Index) Pop(q QueueID, s Selection, dst []Packet) []Packet {
	best, ok := x.Best(q, s)
	from := len(dst)
	switch {
	case !ok:
	case s.Group:
		dst = x.Group(best.ID, s, dst)
	default:
		dst = append(dst, best)
	}
	for _, p := range dst[from:] {
		x.Remove(p.ID)
	}
	return dst
}
