package crash

import (
	"fmt"
	"strconv"
)

// The own names of a client, each of one type.
const (
	ownList  = "list"
	ownNext  = "next" // where elements of the list are moved to
	ownLong  = "long" // a list that grows long and is then deleted
	ownText  = "text"
	ownCount = "count"
	ownHash  = "hash"
)

func ownNames() []string {
	return []string{ownList, ownNext, ownLong, ownText, ownCount, ownHash}
}

// readOf is the command that reads all of an own name.
func readOf(own, name string) []string {
	switch own {
	case ownText, ownCount:
		return []string{"GET", name}
	case ownHash:
		return []string{"HGETALL", name}
	}
	return []string{"LRANGE", name, "0", "-1"}
}

const (
	ownElements = 100 // of a list, above which it only shrinks
	longPush    = 100 // short elements that a push to the long list brings
	maxLong     = 8000
	maxElement  = 4000
	maxText     = 40_000
	ownFields   = 50
)

// name is the full name of one of the client's own.
func (c *redisClient) name(own string) string { return fmt.Sprintf("own:%d:%s", c.number, own) }

// value makes a value that no other is equal to, of so many bytes.
func (c *redisClient) value(size int) string {
	c.serial++
	return string(appendPayload(nil, makeID(c.number, c.serial), size))
}

// element makes a value that is not very large: otherwise the move of many of them would be refused
// in a transaction.
func (c *redisClient) element() string { return c.value(min(randomSize(c.rng), maxElement)) }

// command picks a command under the client's own names.
func (c *redisClient) command() []string {
	switch n := c.rng.IntN(100); {
	case n < 45:
		return c.listCommand()
	case n < 55:
		return c.longCommand()
	case n < 75:
		return c.textCommand()
	case n < 98:
		return c.hashCommand()
	default:
		names := ownNames()
		return []string{"DEL", c.name(names[c.rng.IntN(len(names))])}
	}
}

func (c *redisClient) listCommand() []string {
	list, next := c.name(ownList), c.name(ownNext)
	elements, moved := c.sent.list(list), c.sent.list(next)
	n := c.rng.IntN(100)
	switch {
	case n < 35 && len(elements) < ownElements:
		args := []string{[]string{"LPUSH", "RPUSH"}[n%2], list}
		for range 1 + c.rng.IntN(3) {
			args = append(args, c.element())
		}
		return args
	case n < 60:
		return []string{"RPOPLPUSH", list, next}
	case n < 80 && len(moved) > 0:
		return []string{"LREM", next, "1", moved[c.rng.IntN(len(moved))]}
	case n < 85 && len(elements) > 0:
		return []string{"LINSERT", list, "BEFORE", elements[c.rng.IntN(len(elements))], c.element()}
	case n < 90 && len(elements) > 0:
		return []string{"LSET", list, strconv.Itoa(c.rng.IntN(len(elements))), c.element()}
	case n < 94 && len(elements) > 0:
		return []string{"RENAME", list, next}
	case n < 97:
		return []string{"LPOP", list}
	default:
		return []string{"RPOP", next}
	}
}

// longCommand grows the long list, and deletes it when it is long: mostly so long that the server
// deletes its elements in several batches.
func (c *redisClient) longCommand() []string {
	long := c.name(ownLong)
	if n := len(c.sent.list(long)); n > 0 && c.rng.IntN(maxLong) < n {
		switch c.rng.IntN(3) {
		case 0:
			return []string{"LTRIM", long, "1", "0"}
		case 1:
			from := c.rng.IntN(n)
			return []string{"LTRIM", long, strconv.Itoa(from), strconv.Itoa(from + c.rng.IntN(longPush))}
		}
		return []string{"DEL", long}
	}
	args := []string{"RPUSH", long}
	for range longPush {
		args = append(args, c.value(payloadHeader+c.rng.IntN(20)))
	}
	return args
}

func (c *redisClient) textCommand() []string {
	text := c.name(ownText)
	size := len(c.sent.text(text))
	switch n := c.rng.IntN(100); {
	case n < 30:
		return []string{"INCRBY", c.name(ownCount), strconv.Itoa(1 + c.rng.IntN(9))}
	case n < 45 && size < maxText:
		return []string{"APPEND", text, strconv.Itoa(n)}
	case n < 60 && size < maxText:
		return []string{"SETRANGE", text, strconv.Itoa(c.rng.IntN(size + 20)), strconv.Itoa(n)}
	case n < 65:
		return []string{"SET", text, c.value(payloadHeader + c.rng.IntN(maxText))}
	case n < 85:
		return []string{"SET", text, c.value(randomSize(c.rng))}
	case n < 92:
		return []string{"GETRANGE", text, strconv.Itoa(n), strconv.Itoa(n + c.rng.IntN(size+20))}
	default:
		return []string{"GET", text}
	}
}

func (c *redisClient) hashCommand() []string {
	hash, field := c.name(ownHash), fmt.Sprintf("field-%d", c.rng.IntN(ownFields))
	if c.rng.IntN(3) == 0 {
		return []string{"HDEL", hash, field}
	}
	return []string{"HSET", hash, field, c.element()}
}
