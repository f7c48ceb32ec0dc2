package index

import "testing"

// Only a damaged folder has two packets with one identity.
func TestOfTwoPacketsWithOneIdentityOneHasTheID(t *testing.T) {
	x := New()
	q := x.AddQueue()
	e := Entry{Queue: q, Priority: 1, Seq: 1, Identity: 9, Unique: []byte("a")}
	first := x.Push(e, 0)
	e.Seq = 2
	second := x.Push(e, 0)
	if got, ok := x.Holder(q, e.Unique); !ok || got != 9 {
		t.Errorf("Holder = %d %v, want the first", got, ok)
	}
	x.Remove(second)
	x.SetState(first, Dead, 0)
	if got, ok := x.Holder(q, e.Unique); ok {
		t.Errorf("Holder = %d, want none: the packet is dead", got)
	}
	if unique, ok := x.Unique(first, nil); !ok || string(unique) != "a" {
		t.Errorf("Unique = %q %v", unique, ok)
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}

func TestAWindowHoldsItsIDUntilItIsOverAndItsQueueUntilThen(t *testing.T) {
	x := New()
	q := x.AddQueue()
	first := x.Push(Entry{Queue: q, Priority: 1, Seq: 1}, 0)
	if !x.AddWindow(q, []byte("a"), 1, 50) || x.AddWindow(q, []byte("a"), 2, 60) {
		t.Error("an id must have one window")
	}
	x.Remove(first)
	if got, ok := x.Holder(q, []byte("a")); !ok || got != 1 || !x.HasWindow(q) || x.DropQueue(q) != ErrNotEmpty {
		t.Errorf("Holder = %d %v, want that of the window", got, ok)
	}
	if _, ok := x.Advance(49, 49); ok {
		t.Error("the window is over too soon")
	}
	if ev, ok := x.Advance(50, 50); !ok || ev != (Event{Kind: WindowEnded, Packet: Packet{Queue: q, Identity: 1}}) {
		t.Errorf("Advance = %+v %v", ev, ok)
	}
	if _, ok := x.Holder(q, []byte("a")); ok || x.HasWindow(q) || x.DropQueue(q) != nil {
		t.Error("the window is still there")
	}
}
