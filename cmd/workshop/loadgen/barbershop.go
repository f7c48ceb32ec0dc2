package loadgen

import "fmt"

// The lines of the barbershop protocol:
//
//	update <item> <priority>   OK
//	next                       <item>, or -1 when the board is empty

// BarbershopUpdate updates random items.
func BarbershopUpdate(items Items) Protocol {
	return &driver{request("update ", items.item, " ", items.amount, "\r\n").all, lines(func(text []byte) (bool, error) {
		if string(text) != "OK" {
			return false, fmt.Errorf("the server answered %q to an update, expected OK", text)
		}
		return true, nil
	})}
}

// BarbershopFill makes the items one after the other, for a group whose Count is Items.Live.
func BarbershopFill(items Items) Protocol {
	items.InOrder = true
	return BarbershopUpdate(items)
}

// BarbershopNext takes the item with the highest score.
func BarbershopNext() Protocol {
	return &driver{request("next\r\n").all, lines(func(text []byte) (bool, error) {
		item, ok := number(text)
		if !ok || item < -1 {
			return false, fmt.Errorf("the server answered %q to next, expected an item or -1", text)
		}
		return item >= 0, nil
	})}
}
