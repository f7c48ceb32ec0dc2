package loadgen

import (
	"math"
	"math/bits"
)

// Items says which items of a board a group updates, and by how much. The items have the numbers
// First+1 to First+Live, at most 4,294,967,295. Each update depends only on Seed and the number of
// its request. So two servers get the same work, in whatever order the connections ask.
type Items struct {
	// Queue is the sorted set of Redis. A barbershop server has one board a port, without a name.
	Queue string
	First uint32 // items up to this number are left alone
	Live  int    // how many items are updated, 1 to MaxItems
	Seed  uint64
	// Spread is the most that an update adds, at most MaxSpread; 0 means 1000. The least is 1.
	Spread int

	inOrder bool // whether request n updates item n, so that Live requests make each item once
}

const (
	// MaxItems bounds the memory and the disk space of the server that the items take.
	MaxItems = 100_000_000
	// MaxSpread keeps the sum of some thousand updates below 2^32, the highest score of barbershop.
	MaxSpread = 1_000_000

	defaultSpread = 1000
)

// update is the item that request n updates and how much it adds. Unless the items are in order,
// every item and every amount is equally likely. The item is drawn from the upper half of a random
// number, the amount from the lower half.
func (i *Items) update(n uint64) (item uint32, by uint32) {
	x := scramble(i.Seed + n)
	at, _ := bits.Mul64(x, uint64(i.Live))
	if i.inOrder {
		at = n % uint64(i.Live)
	}
	spread := uint64(i.Spread)
	if spread == 0 {
		spread = defaultSpread
	}
	return i.First + 1 + uint32(at), 1 + uint32(x&math.MaxUint32*spread>>32)
}

// scramble turns consecutive numbers into random ones. It is the step of the generator splitmix64.
func scramble(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
