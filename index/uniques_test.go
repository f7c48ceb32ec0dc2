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
	if got, ok := x.Holder(q, e.Unique); !ok || got.ID != first {
		t.Errorf("Holder = %+v %v, want the first", got, ok)
	}
	x.Remove(second)
	x.SetState(first, Dead, 0)
	if got, ok := x.Holder(q, e.Unique); ok {
		t.Errorf("Holder = %+v, want none: the packet is dead", got)
	}
	if unique, ok := x.Unique(first, nil); !ok || string(unique) != "a" {
		t.Errorf("Unique = %q %v", unique, ok)
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}
