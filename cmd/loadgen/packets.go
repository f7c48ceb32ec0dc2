package loadgen

import "errors"

// Packets says what a group pushes. The packet of request i has the number
// Base+i, which makes it unique (as the key of a pinpriq packet, in the first
// bytes of the payload elsewhere) and gives it its priority.
type Packets struct {
	Queue string // the name of the queue, list or sorted set; beanstalkd uses its default tube
	Size  int    // payload bytes, MinSize to MaxSize
	Base  uint64 // number of the first packet; choose it so that two runs on one queue do not overlap
	// Levels spreads the packets over the priorities 1 to Levels; 0 means 8, and
	// MaxLevels is the most that pinpriq's byte can say.
	Levels int
	// Block is how many consecutive packets share a priority before the next
	// level begins; 0 means 1. With Block×Levels at least the number of
	// packets pushed, a priority queue behaves like a FIFO of Levels steps.
	Block uint64
}

const (
	// MinSize leaves room for the number that makes a payload unique.
	MinSize = 16
	// MaxSize is the largest payload a pinpriq packet can carry, its length
	// being 16 bits wide.
	MaxSize = 65535
	// MaxLevels is the number of selectable priorities of pinpriq.
	MaxLevels = 255
	// maxQueueName is the longest name a pinpriq frame can carry.
	maxQueueName = 65535

	defaultLevels = 8
)

// Check reports the first field that is out of its range.
func (p Packets) Check() error {
	switch {
	case p.Size < MinSize || p.Size > MaxSize:
		return errors.New("the payload size must be 16 to 65535 bytes")
	case p.Levels < 0 || p.Levels > MaxLevels:
		return errors.New("the number of priority levels must be 0 (for 8) to 255")
	case len(p.Queue) > maxQueueName:
		return errors.New("the queue name must be at most 65535 bytes")
	}
	return nil
}

// priority is the rank of the packet with that number, 1 being the best.
func (p *Packets) priority(number uint64) uint64 {
	levels, block := uint64(p.Levels), p.Block
	if levels == 0 {
		levels = defaultLevels
	}
	if block == 0 {
		block = 1
	}
	return 1 + number/block%levels
}

// payload makes the bytes every packet shares: printable, and without the
// repetition that a compressing file system would shrink.
func (p *Packets) payload() []byte {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	payload := make([]byte, p.Size)
	state := uint64(0x9e3779b97f4a7c15)
	for i := range payload {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		payload[i] = letters[state>>58]
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
