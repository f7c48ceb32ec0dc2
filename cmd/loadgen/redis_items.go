package loadgen

import (
	"fmt"
	"strconv"
)

// A board of items in Redis is a sorted set whose members are the numbers of the
// items: ZINCRBY makes or shifts one, ZPOPMAX takes the highest.

// RedisZIncrBy shifts random items.
func RedisZIncrBy(items Items) Protocol {
	return newRedisShift(items, false)
}

// RedisZIncrByFill makes the items one after the other, for a group whose Count
// is the number of items.
func RedisZIncrByFill(items Items) Protocol {
	return newRedisShift(items, true)
}

// RedisZPopMax takes the highest member of a sorted set, without waiting.
func RedisZPopMax(queue string) Protocol {
	return &redisTake{request: redisCommand("ZPOPMAX", queue)}
}

type redisShift struct {
	items   Items
	fill    bool
	head    []byte // the command and its key
	replies respReader
}

func newRedisShift(items Items, fill bool) *redisShift {
	head := fmt.Appendf(nil, "*4\r\n$7\r\nZINCRBY\r\n$%d\r\n%s\r\n", len(items.Queue), items.Queue)
	return &redisShift{items: items, fill: fill, head: head}
}

func (c *redisShift) Append(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		item, by := c.items.shift(i)
		if c.fill {
			item, by = c.items.fill(i)
		}
		dst = append(dst, c.head...)
		dst = appendBulkNumber(dst, uint64(by))
		dst = appendBulkNumber(dst, uint64(item))
	}
	return dst
}

func (c *redisShift) Consume(dst, src []byte) ([]byte, Progress, error) {
	used, replies, _, err := c.replies.read(src)
	return dst, Progress{Used: used, Done: replies, Packets: replies}, err
}

// appendBulkNumber appends n as a bulk string.
func appendBulkNumber(dst []byte, n uint64) []byte {
	digits := uint64(1)
	for rest := n; rest >= 10; rest /= 10 {
		digits++
	}
	dst = strconv.AppendUint(append(dst, '$'), digits, 10)
	dst = strconv.AppendUint(append(dst, '\r', '\n'), n, 10)
	return append(dst, '\r', '\n')
}
