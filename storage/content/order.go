package content

import (
	"errors"
	"fmt"
)

// Order is the values of a tag from the lowest to the highest (zkmq document, OrderedEnum).
type Order struct {
	Tag    string
	Values []string
}

// CheckOrders says what was expected of the orders of a queue, if no queue can have these.
func CheckOrders(orders []Order) error {
	if len(orders) > MaxOrders {
		return fmt.Errorf("expected at most %d tags, got %d", MaxOrders, len(orders))
	}
	bytes := 0
	for i, o := range orders {
		switch {
		case o.Tag == "":
			return errors.New("expected a tag that is not empty")
		case i > 0 && o.Tag <= orders[i-1].Tag:
			return fmt.Errorf("expected tags in the order of their bytes, each once, got %.100q behind %.100q", o.Tag, orders[i-1].Tag)
		case len(o.Values) == 0:
			return fmt.Errorf("expected values of the tag %.100q, got none", o.Tag)
		}
		bytes += len(o.Tag)
		seen := make(map[string]bool)
		for _, v := range o.Values {
			switch {
			case v == "":
				return errors.New("expected values that are not empty")
			case seen[v]:
				return fmt.Errorf("expected each value once, got %.100q twice", v)
			}
			seen[v] = true
			if bytes += len(v); bytes > MaxOrderBytes {
				return fmt.Errorf("expected tags and values of at most %d bytes together, got more", MaxOrderBytes)
			}
		}
	}
	return nil
}

// Orders holds the orders of a queue, each tag once, sorted by their bytes.
type Orders []Order

// appendOrders appends a map from tags to arrays of values.
func appendOrders(dst []byte, orders Orders) []byte {
	dst = appendParts(dst, formMap, formMap16, len(orders))
	for _, o := range orders {
		dst = appendArray(appendStr(dst, o.Tag), len(o.Values))
		for _, v := range o.Values {
			dst = appendStr(dst, v)
		}
	}
	return dst
}

// orders reads such a map.
func (r *reader) orders() (orders Orders) {
	for range r.fields() {
		o := Order{Tag: string(r.str())}
		for range r.array() {
			o.Values = append(o.Values, string(r.str()))
		}
		orders = append(orders, o)
	}
	return orders
}
