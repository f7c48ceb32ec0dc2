package loadgen

import (
	"fmt"
	"strconv"
)

// The lines of the barbershop protocol, in the document's dialect and in the
// upper-case one that came later, whose replies begin with a sign:
//
//	update <item> <priority>   OK             UPDATE <item> <score>   +OK
//	next                       <item> or -1   NEXT                    +<item> or +-1

// BarbershopUpdate shifts random items.
func BarbershopUpdate(items Items) Protocol {
	return newBarbershopUpdate(items, false)
}

// BarbershopFill makes the items one after the other, for a group whose Count is
// the number of items.
func BarbershopFill(items Items) Protocol {
	return newBarbershopUpdate(items, true)
}

// BarbershopNext takes the item with the highest score. later is as in Items.
func BarbershopNext(later bool) Protocol {
	c := &barbershopNext{request: "next\r\n"}
	if later {
		c.request, c.sign = "NEXT\r\n", "+"
	}
	return c
}

type barbershopUpdate struct {
	items Items
	fill  bool
	head  string // what stands before the item
	ok    string // the reply
}

func newBarbershopUpdate(items Items, fill bool) *barbershopUpdate {
	c := &barbershopUpdate{items: items, fill: fill, head: "update ", ok: "OK"}
	if items.Later {
		c.head, c.ok = "UPDATE ", "+OK"
	}
	return c
}

func (c *barbershopUpdate) Append(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		item, by := c.items.shift(i)
		if c.fill {
			item, by = c.items.fill(i)
		}
		dst = append(dst, c.head...)
		dst = strconv.AppendUint(dst, uint64(item), 10)
		dst = append(dst, ' ')
		dst = strconv.AppendUint(dst, uint64(by), 10)
		dst = append(dst, '\r', '\n')
	}
	return dst
}

func (c *barbershopUpdate) Consume(dst, src []byte) ([]byte, Progress, error) {
	var p Progress
	for {
		text, size, err := line(src[p.Used:])
		if err != nil || size == 0 {
			return dst, p, err
		}
		if string(text) != c.ok {
			return dst, p, fmt.Errorf("the server answered %q to an update, expected %s", text, c.ok)
		}
		p.Used += size
		p.Done++
		p.Packets++
	}
}

type barbershopNext struct {
	request string
	sign    string // what every reply begins with
}

func (c *barbershopNext) Append(dst []byte, _ uint64, n int) []byte {
	for range n {
		dst = append(dst, c.request...)
	}
	return dst
}

func (c *barbershopNext) Consume(dst, src []byte) ([]byte, Progress, error) {
	var p Progress
	for {
		text, size, err := line(src[p.Used:])
		if err != nil || size == 0 {
			return dst, p, err
		}
		item, ok := int64(0), len(text) > len(c.sign) && string(text[:len(c.sign)]) == c.sign
		if ok {
			item, ok = number(text[len(c.sign):])
		}
		if !ok || item < -1 {
			return dst, p, fmt.Errorf("the server answered %q to a request for the next item, expected %sITEM or %s-1", text, c.sign, c.sign)
		}
		p.Used += size
		p.Done++
		if item < 0 {
			p.Empty++
		} else {
			p.Packets++
		}
	}
}
