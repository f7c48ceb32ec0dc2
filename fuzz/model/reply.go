package model

import (
	"fmt"
	"slices"
	"strings"
)

// A reply is nil, a string, an int64, a []any, an Err, a Map, Some of a map, AtMost, a Set, a Bag,
// OneOf or Any.

// Err is the first word of an error.
type Err string

// Map is the names and values of a map, in any order.
type Map map[string]any

// Set is maps with names, in any order.
type Set []Map

// Bag is elements in any order.
type Bag []any

// Among is some of some elements, in any order.
type Among []any

// Onward is a cursor that is not at the end.
type Onward struct{}

// OneOf is one of some replies.
type OneOf []any

// Some is a map of which no more is known.
type Some Map

// AtMost is a number that is no more than that.
type AtMost int64

// Any is a reply of which nothing is known.
type Any struct{}

// took says that a reply is none of an error.
func took(reply any) bool {
	switch reply.(type) {
	case Err, OneOf:
		return false
	}
	return true
}

// Same says what is wrong with what a server replies, nil if nothing is. got has no maps, but names
// and values in turn.
func Same(got, want any) error {
	fits := true
	switch want := want.(type) {
	case Any:
		return nil
	case Err:
		e, ok := got.(Err)
		fits = ok && strings.HasPrefix(string(e), string(want))
	case AtMost:
		n, ok := got.(int64)
		fits = ok && n <= int64(want)
	case OneOf:
		fits = slices.ContainsFunc(want, func(v any) bool { return Same(got, v) == nil })
	case Bag:
		list, ok := got.([]any)
		fits = ok && len(list) == len(want)
		for _, v := range want {
			fits = fits && slices.Contains(list, v)
		}
	case Among:
		list, ok := got.([]any)
		fits = ok && !slices.ContainsFunc(list, func(v any) bool { return !slices.Contains(want, v) })
	case Onward:
		text, ok := got.(string)
		fits = ok && text != "0"
	case Map:
		return sameMap(Pairs(got), want, true)
	case Some:
		return sameMap(Pairs(got), Map(want), false)
	case Set:
		list, ok := got.([]any)
		fits = ok && len(list) == len(want)
		for _, m := range want {
			fits = fits && slices.ContainsFunc(list, func(v any) bool { return Same(v, m) == nil })
		}
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Errorf("it replies %v, want %v", heads(list), heads(want))
		}
		for i := range want {
			if err := Same(list[i], want[i]); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
	default:
		fits = got == want
	}
	if !fits {
		return fmt.Errorf("it replies %.200q, want %.200q", fmt.Sprint(got), fmt.Sprint(want))
	}
	return nil
}

func sameMap(got, want Map, whole bool) error {
	for name, v := range want {
		if err := Same(got[name], v); err != nil {
			return fmt.Errorf("%s of %v: %w", name, short(got), err)
		}
	}
	for name, v := range got {
		if _, known := want[name]; whole && !known {
			return fmt.Errorf("there is %s %v in %v, want none", name, v, short(got))
		}
	}
	return nil
}

// short is a map in few words.
func short(m Map) string { return fmt.Sprintf("%.300q", fmt.Sprint(m)) }

// Pairs makes a map of names and values that a reply has in turn.
func Pairs(got any) Map {
	m := Map{}
	list, _ := got.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		m[fmt.Sprint(list[i])] = list[i+1]
	}
	return m
}

// heads are the ids of packets in a list, or what else there is.
func heads(list []any) (all []any) {
	for _, v := range list {
		if m, ok := v.(Map); ok {
			v = m["id"]
		} else if m := Pairs(v); m["id"] != nil {
			v = m["id"]
		}
		all = append(all, v)
	}
	return all
}
