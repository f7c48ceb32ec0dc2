// Package barbershop speaks the text protocol of the barbershop document, in both of its dialects:
// a board of items whose scores grow. PROTOCOL.md describes it. line.go splits the stream into
// lines and words, command.go carries them out, server.go is the session of a connection, item.go
// maps items and scores to packets.
//
// An item is a packet whose key is the item's number in decimal and which holds nothing else. Its
// priority is its score counted down from the highest.
package barbershop

import (
	"math"
	"strconv"
)

// DefaultQueue is the queue that serves as the board unless another is named.
const DefaultQueue = "barbershop"

// maxDigits is the length of the highest 32-bit number.
const maxDigits = 10

// AppendKey appends the key of an item's packet.
func AppendKey(dst []byte, item uint32) []byte { return strconv.AppendUint(dst, uint64(item), 10) }

// ParseKey returns the item whose packet has this key. ok is false if AppendKey makes no such key.
func ParseKey(key []byte) (item uint32, ok bool) {
	if len(key) == 0 || len(key) > maxDigits || key[0] == '0' && len(key) > 1 {
		return 0, false
	}
	return parseNumber(key)
}

// Priority is the priority of an item with this score; the highest score has the best. Priority 0
// is never selected, so the two highest scores share priority 1.
func Priority(score uint32) uint32 { return max(1, math.MaxUint32-score) }

// Score is the score of a packet with this priority, which is not 0.
func Score(priority uint32) uint32 {
	if priority <= 1 {
		return math.MaxUint32
	}
	return math.MaxUint32 - priority
}

// add is the sum of two scores, at most the highest score.
func add(a, b uint32) uint32 {
	if b > math.MaxUint32-a {
		return math.MaxUint32
	}
	return a + b
}

// parseNumber parses decimal digits whose value is below 2^32. Leading zeros are allowed.
func parseNumber(word []byte) (n uint32, ok bool) {
	v, err := strconv.ParseUint(string(word), 10, 32)
	return uint32(v), err == nil
}
