package index

import "unsafe"

// Memory is the bytes held, in use or free, without the maps that find lanes by tags and the
// allocator's own share.
func (x *Index) Memory() int64 {
	return int64(unsafe.Sizeof(*x)) + x.entries.bytes() + x.forest.bytes() +
		x.keys.groups.bytes() + x.keys.blocks.bytes() + x.keys.buckets.heads.bytes() + x.largeGroups.bytes() +
		x.timers.bytes() + x.timers.heaps[wall].items.bytes() + x.timers.heaps[steady].items.bytes() +
		x.deliveries.bytes() + x.byStates.bytes() + x.identities.buckets.heads.bytes() + x.identities.next.bytes() + x.identities.moved.bytes() + x.uniques.bytes() + x.lanes.bytes() + x.queues.bytes()
}

// bytes is the memory held.
func (p *paged[T]) bytes() int64 {
	var page [pageLen]T
	return int64(len(p.pages))*int64(unsafe.Sizeof(page)) + int64(cap(p.pages))*int64(unsafe.Sizeof(uintptr(0)))
}

// bytes is the memory held.
func (s *sparse[T]) bytes() (n int64) {
	for _, page := range s.pages {
		if page != nil {
			n += int64(unsafe.Sizeof(*page))
		}
	}
	return n + int64(cap(s.pages))*int64(unsafe.Sizeof(uintptr(0)))
}

// bytes is the memory held, but for the nodes of the tree.
func (u *uniques) bytes() int64 {
	return u.ids.groups.bytes() + u.ids.blocks.bytes() + u.ids.buckets.heads.bytes() + u.groups.bytes()
}
