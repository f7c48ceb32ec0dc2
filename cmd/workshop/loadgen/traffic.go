package loadgen

import (
	"math"
	"math/bits"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// Packets says what a group pushes. The packet of request i has the number Base+i. The number gives
// the packet its priority and makes it unique: it is the key of a pinpriq packet, and elsewhere the
// first bytes of the payload.
type Packets struct {
	Queue string // name of the queue or sorted set, at most 65,535 bytes; beanstalkd uses its default tube
	Size  int    // payload bytes, MinSize to MaxSize
	Base  uint64 // number of the first packet; two runs on one queue must not use the same numbers
	// Levels spreads the packets over the priorities 1 to Levels, at most MaxLevels; 0 means 8.
	Levels int
	// Block is how many consecutive packets have the same priority; 0 means 1. When Block×Levels
	// is at least the number of packets, the queue is nearly first in, first out.
	Block uint64
}

const (
	// MinSize leaves room for the number that makes a payload unique.
	MinSize = 16
	// MaxSize is the largest payload of a pinpriq packet.
	MaxSize = pinpriq.MaxPayload
	// MaxLevels is how many priorities of pinpriq can be selected.
	MaxLevels = 255
	// MaxItems bounds the memory and the disk space of the server that the items take.
	MaxItems = 100_000_000
	// MaxSpread keeps the sum of some thousand updates below 2^32, the highest score of barbershop.
	MaxSpread = 1_000_000

	defaultLevels = 8
	defaultSpread = 1000
)

// priority is the priority of the packet of request i; 1 is best.
func (p *Packets) priority(i uint64) uint64 {
	levels := uint64(p.Levels)
	if levels == 0 {
		levels = defaultLevels
	}
	return 1 + (p.Base+i)/max(p.Block, 1)%levels
}

// payload makes the bytes that all packets share. They are printable, and random so that a file
// system cannot compress them.
func (p *Packets) payload() []byte {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	payload := make([]byte, p.Size)
	for i := range payload {
		payload[i] = letters[scramble(uint64(i))>>58]
	}
	return payload
}

// numbered appends the payload of request i.
func (p *Packets) numbered() part {
	payload, base := p.payload(), p.Base
	return func(dst []byte, i uint64) []byte {
		at := len(dst)
		dst = append(dst, payload...)
		putHex(dst[at:], base+i)
		return dst
	}
}

// putHex writes n as 16 hexadecimal digits to the front of dst.
func putHex(dst []byte, n uint64) {
	const digits = "0123456789abcdef"
	for i := 15; i >= 0; i-- {
		dst[i] = digits[n&15]
		n >>= 4
	}
}

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
	// InOrder has request n update item n, so that Live requests make each item once.
	InOrder bool
}

// update is the item that request n updates and how much it adds. Unless the items are in order,
// every item and every amount is equally likely. The item is drawn from the upper half of a random
// number, the amount from the lower half.
func (i *Items) update(n uint64) (item, by uint64) {
	x := scramble(i.Seed + n)
	at, _ := bits.Mul64(x, uint64(i.Live))
	if i.InOrder {
		at = n % uint64(i.Live)
	}
	spread := uint64(i.Spread)
	if spread == 0 {
		spread = defaultSpread
	}
	return uint64(i.First) + 1 + at, 1 + x&math.MaxUint32*spread>>32
}

func (i *Items) item(n uint64) uint64   { item, _ := i.update(n); return item }
func (i *Items) amount(n uint64) uint64 { _, by := i.update(n); return by }

// scramble turns consecutive numbers into random ones. It is the step of the generator splitmix64.
func scramble(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
