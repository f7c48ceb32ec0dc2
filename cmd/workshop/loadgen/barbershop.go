package loadgen

import (
	"fmt"
	"strconv"
)

// The lines of the barbershop protocol:
//
//	update <item> <priority>   OK
//	next                       <item>, or -1 when the board is empty

// BarbershopUpdate updates random items.
func BarbershopUpdate(items Items) Protocol { return &barbershopUpdate{items} }

// BarbershopFill makes the items one after the other, for a group whose Count is Items.Live.
func BarbershopFill(items Items) Protocol {
	items.inOrder = true
	return BarbershopUpdate(items)
}

// BarbershopNext takes the item with the highest score.
func BarbershopNext() Protocol { return &barbershopNext{repeated("next\r\n")} }

type barbershopUpdate struct{ items Items }

func (c *barbershopUpdate) Append(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		item, by := c.items.update(i)
		dst = append(dst, "update "...)
		dst = strconv.AppendUint(dst, uint64(item), 10)
		dst = append(dst, ' ')
		dst = strconv.AppendUint(dst, uint64(by), 10)
		dst = append(dst, '\r', '\n')
	}
	return dst
}

func (c *barbershopUpdate) Consume(dst, src []byte) ([]byte, Progress, error) {
	p, err := eachLine(src, func(text []byte) (bool, error) {
		if string(text) != "OK" {
			return false, fmt.Errorf("the server answered %q to an update, expected OK", text)
		}
		return true, nil
	})
	return dst, p, err
}

type barbershopNext struct{ repeated }

func (c *barbershopNext) Consume(dst, src []byte) ([]byte, Progress, error) {
	p, err := eachLine(src, func(text []byte) (bool, error) {
		item, ok := number(text)
		if !ok || item < -1 {
			return false, fmt.Errorf("the server answered %q to next, expected an item or -1", text)
		}
		return item >= 0, nil
	})
	return dst, p, err
}
