package loadgen

import (
	"fmt"
	"strconv"
)

// A board in Redis is a sorted set whose members are the numbers of the items: ZINCRBY makes or
// updates one, ZPOPMAX takes the highest.

// RedisZIncrBy updates random items.
func RedisZIncrBy(items Items) Protocol {
	head := fmt.Appendf(nil, "*4\r\n$7\r\nZINCRBY\r\n$%d\r\n%s\r\n", len(items.Queue), items.Queue)
	return &redisUpdate{items: items, head: head}
}

// RedisZIncrByFill makes the items one after the other, for a group whose Count is Items.Live.
func RedisZIncrByFill(items Items) Protocol {
	items.inOrder = true
	return RedisZIncrBy(items)
}

// RedisZPopMax takes the highest member of a sorted set, without waiting.
func RedisZPopMax(queue string) Protocol {
	return &redisTake{repeated: redisCommand("ZPOPMAX", queue)}
}

type redisUpdate struct {
	items   Items
	head    []byte // the command and its key
	replies respReader
}

func (c *redisUpdate) Append(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		item, by := c.items.update(i)
		dst = append(dst, c.head...)
		dst = appendBulkNumber(dst, uint64(by))
		dst = appendBulkNumber(dst, uint64(item))
	}
	return dst
}

func (c *redisUpdate) Consume(dst, src []byte) ([]byte, Progress, error) {
	p, err := c.replies.read(src)
	p.Packets, p.Empty = p.Done, 0
	return dst, p, err
}

// appendBulkNumber appends n as a bulk string.
func appendBulkNumber(dst []byte, n uint64) []byte {
	digits := uint64(1)
	for rest := n; rest >= 10; rest /= 10 {
		digits++
	}
	dst = strconv.AppendUint(appendCount(dst, '$', digits), n, 10)
	return append(dst, '\r', '\n')
}

// appendBulk appends a bulk string.
func appendBulk(dst, text []byte) []byte {
	dst = append(appendCount(dst, '$', uint64(len(text))), text...)
	return append(dst, '\r', '\n')
}

// appendCount appends the line that begins an array or a bulk string.
func appendCount(dst []byte, kind byte, n uint64) []byte {
	dst = strconv.AppendUint(append(dst, kind), n, 10)
	return append(dst, '\r', '\n')
}
