package loadgen

import "github.com/holdfast-queue/holdfast/netproto/pinpriq"

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

	defaultLevels = 8
)

// priority is the priority of the packet with that number; 1 is best.
func (p *Packets) priority(number uint64) uint64 {
	levels, block := uint64(p.Levels), max(p.Block, 1)
	if levels == 0 {
		levels = defaultLevels
	}
	return 1 + number/block%levels
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

// putHex writes n as 16 hexadecimal digits to the front of dst.
func putHex(dst []byte, n uint64) {
	const digits = "0123456789abcdef"
	for i := 15; i >= 0; i-- {
		dst[i] = digits[n&15]
		n >>= 4
	}
}
