package loadgen

import (
	"errors"
	"math"
	"math/bits"
)

// Items says which items a group's updates shift, and by how much. The items
// are numbered First+1 to First+Live. Which of them a request shifts, and by how
// much, follows from Seed and the number of the request alone, so two servers
// are given the same work in whatever order the connections take their turns.
type Items struct {
	// Queue is the sorted set of Redis. A barbershop server has one board to
	// each port, so its protocol names none.
	Queue string
	First uint32 // items up to this number are left alone
	Live  int    // how many items are shifted, 1 to MaxItems
	Seed  uint64
	// Spread is the most that an update adds, the least being 1; 0 means 1000,
	// and MaxSpread is the most.
	Spread int
	// Later speaks the upper-case dialect instead of the document's.
	Later bool
}

const (
	// MaxItems bounds the items of a load: each takes memory and disk of the server.
	MaxItems = 100_000_000
	// MaxSpread keeps the sum of some thousand updates below 2^32, where the
	// scores of barbershop end.
	MaxSpread = 1_000_000

	defaultSpread = 1000
)

// Check reports the first field that is out of its range.
func (i Items) Check() error {
	switch {
	case i.Live < 1 || i.Live > MaxItems:
		return errors.New("the number of items must be 1 to 100000000")
	case uint64(i.First)+uint64(i.Live) > math.MaxUint32:
		return errors.New("the last item must have a number below 4294967296")
	case i.Spread < 0 || i.Spread > MaxSpread:
		return errors.New("the most that an update adds must be 0 (for 1000) to 1000000")
	}
	return nil
}

// shift is the item that request n shifts, and by how much: every item and every
// amount is equally likely.
func (i *Items) shift(n uint64) (item uint32, by uint32) {
	x := scramble(i.Seed + n)
	at, _ := bits.Mul64(x, uint64(i.Live))
	return i.First + 1 + uint32(at), i.amount(x)
}

// fill is the same for a group that fills the board: a count of Live requests
// makes every item once.
func (i *Items) fill(n uint64) (item uint32, by uint32) {
	return i.First + 1 + uint32(n%uint64(i.Live)), i.amount(scramble(i.Seed + n))
}

// amount takes its chance from the lower half of x, shift takes the item's from
// the upper one.
func (i *Items) amount(x uint64) uint32 {
	spread := i.Spread
	if spread == 0 {
		spread = defaultSpread
	}
	return 1 + uint32(x&math.MaxUint32*uint64(spread)>>32)
}

// scramble makes numbers without a pattern of numbers that follow one another: it
// is the step of the splitmix64 generator.
func scramble(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
