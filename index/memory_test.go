package index

import (
	"unsafe"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// Memory is the bytes held, in use or free, without the maps that find lanes by tags and the
// allocator's own share.
func (x *Index) Memory() int64 {
	return int64(unsafe.Sizeof(*x)) + paged(&x.entries.Paged) + paged(&x.forest.Paged) +
		paged(&x.keys.groups.Paged) + paged(&x.keys.blocks.Paged) + paged(&x.keys.buckets.heads) + paged(&x.largeGroups.Paged) +
		paged(&x.timers.Paged) + paged(&x.timers.heaps[wall].items) + paged(&x.timers.heaps[steady].items) +
		paged(&x.deliveries.Paged) + paged(&x.byStates.Paged) + paged(&x.identities.buckets.heads) + paged(&x.identities.next) + sparse(&x.identities.moved) + x.uniques.bytes() + paged(&x.lanes.Paged) + paged(&x.queues.Paged)
}

// paged is the memory that an array holds.
func paged[T any](p *tree.Paged[T]) int64 {
	var page [tree.PageLen]T
	return int64(len(p.Pages))*int64(unsafe.Sizeof(page)) + int64(cap(p.Pages))*int64(unsafe.Sizeof(uintptr(0)))
}

// sparse is the memory that an array holds of which few elements are used.
func sparse[T any](s *tree.Sparse[T]) (n int64) {
	for _, page := range s.Pages {
		if page != nil {
			n += int64(unsafe.Sizeof(*page))
		}
	}
	return n + int64(cap(s.Pages))*int64(unsafe.Sizeof(uintptr(0)))
}

// bytes is the memory held, but for the nodes of the tree.
func (u *uniques) bytes() int64 {
	return paged(&u.ids.groups.Paged) + paged(&u.ids.blocks.Paged) + paged(&u.ids.buckets.heads) + sparse(&u.groups)
}
