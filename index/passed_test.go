package index

import (
	"fmt"
	"testing"
)

// What a walk of many lanes counts says how many of them a transaction may make.
func TestAWalkOverManyLanesCountsWhatItOpensAndItsSteps(t *testing.T) {
	const lanes, each = 100, 10
	x := New()
	q := x.AddQueue()
	for n := range uint64(lanes * each) {
		x.Push(Entry{Queue: q, Priority: 1, Seq: n + 1, Tags: []byte(fmt.Sprint(n % lanes))}, 0)
	}
	cost := func(do func()) int {
		before := x.Passed()
		do()
		return x.Passed() - before
	}
	asked := 0
	list := cost(func() {
		for range x.Each(q, Ready, Place{}, func(string) bool { asked++; return true }, nil) {
		}
	})
	if leaves := list - lanes*passedLane; leaves < 0 || leaves > lanes*each || asked != lanes {
		t.Errorf("a list counts %d, and asks the filter %d times", list, asked)
	}
	first := cost(func() {
		for range x.Each(q, Ready, Place{}, nil, nil) {
			break
		}
	})
	if first > passedLane+1 {
		t.Errorf("the first of a list counts %d", first)
	}
	next := cost(func() { x.NextBehind(q, Oldest, Place{}, lanes*each, nil) })
	if leaves := next - (lanes*each-1)*passedStep; leaves < 0 || leaves > lanes*each {
		t.Errorf("a page of all counts %d", next)
	}
}
