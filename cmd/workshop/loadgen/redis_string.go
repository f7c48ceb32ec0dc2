package loadgen

import "fmt"

// Strings of Redis: their names hold the numbers of items, drawn as those of a board are.

// RedisSet sets random strings to a value of so many bytes.
func RedisSet(items Items, size int) Protocol {
	value := fmt.Sprintf("$%d\r\n%s\r\n", size, (&Packets{Size: size}).payload())
	return newRedisString(items, "*3\r\n$3\r\nSET\r\n", value)
}

// RedisSetFill sets the strings one after the other, for a group whose Count is Items.Live.
func RedisSetFill(items Items, size int) Protocol {
	items.inOrder = true
	return RedisSet(items, size)
}

// RedisGet reads random strings.
func RedisGet(items Items) Protocol {
	return newRedisString(items, "*2\r\n$3\r\nGET\r\n", "")
}

type redisString struct {
	items    Items
	request  []byte
	numberAt int // offset of the number in the string's name
	replies  respReader
}

func newRedisString(items Items, head, tail string) *redisString {
	const digits = 16
	request := fmt.Appendf(nil, "%s$%d\r\n%s:", head, len(items.Queue)+1+digits, items.Queue)
	c := &redisString{items: items, numberAt: len(request)}
	c.request = fmt.Appendf(request, "%0*d\r\n%s", digits, 0, tail)
	return c
}

func (c *redisString) Append(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		item, _ := c.items.update(i)
		at := len(dst) + c.numberAt
		dst = append(dst, c.request...)
		putHex(dst[at:], uint64(item))
	}
	return dst
}

func (c *redisString) Consume(dst, src []byte) ([]byte, Progress, error) {
	p, err := c.replies.read(src)
	return dst, p, err
}
