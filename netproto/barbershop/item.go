// Package barbershop speaks the text protocol of the barbershop document, in both of its dialects,
// on a broker: a board of items whose scores grow. PROTOCOL.md in this folder is its description.
//
// An item is a packet whose key is the item's number in decimal and which holds nothing else; its
// score is its priority, turned over.
package barbershop

import (
	"math"
	"strconv"
)

// DefaultQueue is the queue that serves as the board unless another is named.
const DefaultQueue = "barbershop"

// maxDigits is how long a number of 32 bits can be without leading zeros.
const maxDigits = 10

// AppendKey appends the key of the packet that stands for an item.
func AppendKey(dst []byte, item uint32) []byte { return strconv.AppendUint(dst, uint64(item), 10) }

// ParseKey returns the item that a packet with this key stands for; false if it is no item's: only
// what AppendKey makes is one.
func ParseKey(key []byte) (item uint32, ok bool) {
	if len(key) == 0 || len(key) > maxDigits || key[0] == '0' && len(key) > 1 {
		return 0, false
	}
	return parseNumber(key)
}

// Priority is the priority of an item with this score: the highest score has the best. Priority 0
// is never selected, so the two highest scores share priority 1.
func Priority(score uint32) uint32 { return max(1, math.MaxUint32-score) }

// Score is the score of a packet with this priority, which is not 0.
func Score(priority uint32) uint32 {
	if priority <= 1 {
		return math.MaxUint32
	}
	return math.MaxUint32 - priority
}

// add is the sum of two scores, or the highest score if that is less.
func add(a, b uint32) uint32 {
	if b > math.MaxUint32-a {
		return math.MaxUint32
	}
	return a + b
}

// parseNumber reads a word of decimal digits, leading zeros allowed, with a value below 2^32.
func parseNumber(word []byte) (n uint32, ok bool) {
	if len(word) == 0 {
		return 0, false
	}
	v := uint64(0)
	for _, c := range word {
		if c < '0' || c > '9' {
			return 0, false
		}
		if v = v*10 + uint64(c-'0'); v > math.MaxUint32 {
			return 0, false
		}
	}
	return uint32(v), true
}
