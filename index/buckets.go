package index

import (
	"math/bits"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// buckets are the heads of the chains of a table that grows and shrinks one bucket at a time
// (linear hashing), so no operation pays for a rehash of the whole. What is chained, and how, is
// the table's own matter.
type buckets struct {
	heads tree.Paged[uint32] // first number of each chain; 0: none
	size  uint32             // a power of two plus the buckets already split
}

const minBuckets = 64

func (b *buckets) resize(size uint32) {
	b.size = size
	b.heads.Resize(size)
}

// of is the bucket of a hash at the present size.
func (b *buckets) of(h uint64) *uint32 {
	mask := uint32(1)<<bits.Len32(b.size-1) - 1
	i := uint32(h) & mask
	if i >= b.size {
		i &= mask >> 1
	}
	return b.heads.At(i)
}

// split adds a bucket. It empties the one that it splits off and returns its chain, which the table
// distributes again.
func (b *buckets) split() (chain uint32) {
	if b.size == 1<<31 {
		return 0
	}
	from := b.heads.At(b.size &^ (1 << (bits.Len32(b.size) - 1)))
	b.resize(b.size + 1)
	chain = *from
	*from, *b.heads.At(b.size - 1) = 0, 0
	return chain
}

// excess returns how many buckets to merge where live numbers are left: up to four, so that the
// table shrinks as fast as numbers go.
func (b *buckets) excess(live uint32) int {
	if b.size <= minBuckets || live >= b.size/4 {
		return 0
	}
	return int(min(4, b.size-minBuckets))
}

// merge removes the last bucket: the reverse of split. It returns its chain and the bucket behind
// whose own chain the table puts that.
func (b *buckets) merge() (to *uint32, chain uint32) {
	last := b.heads.At(b.size - 1)
	chain, *last = *last, 0
	b.resize(b.size - 1)
	return b.heads.At(b.size &^ (1 << (bits.Len32(b.size) - 1))), chain
}
