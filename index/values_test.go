package index

import "testing"

func TestTheFirstSearchOfAShortListLooksAtNoOther(t *testing.T) {
	x := New()
	short := x.AddQueue()
	for i := range 50_000 {
		q := short
		if i == 200 {
			q = x.AddQueue()
		}
		if i >= 200 {
			q = short + 1
		}
		if x.Push(Entry{Queue: q, Priority: 128, Seq: uint64(i + 1), Hash: uint64(i+1) << 20}, 0) == 0 {
			t.Fatal("not pushed")
		}
	}
	if x.BuildValues(short, 4096) {
		t.Fatal("a search of 200 packets needs more than a slice of 4096")
	}
}
