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
	if !x.BuildValues(short, 4096) || x.BuildValues(short, 4096) {
		t.Fatal("a search of 200 packets needs more than a slice of 4096, or none")
	}
}

func TestASearchOfPacketsThatAllHaveKeysIsPreparedOnce(t *testing.T) {
	for _, n := range []int{100, 10_000} {
		x := New()
		q := x.AddQueue()
		for i := range n {
			if x.Push(Entry{Queue: q, Priority: 128, Seq: uint64(i + 1), Key: []byte("key"), Hash: 1 << 20}, 0) == 0 {
				t.Fatal("not pushed")
			}
		}
		for x.BuildValues(q, 4096) {
		}
		if u := x.queues.at(uint32(q)); u.values == nil {
			t.Fatalf("%d packets are searched one by one each time", n)
		}
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
	}
}
