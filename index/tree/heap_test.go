package tree

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// knot is an item that says where it stands.
type knot struct {
	value int
	pos   *uint32
}

func (a *knot) Before(b *knot) bool { return a.value < b.value }
func (a *knot) Moved(pos uint32)    { *a.pos = pos }

// heapModel drives a heap and a list of what is in it.
type heapModel struct {
	heap Heap[knot, *knot]
	held []*uint32
}

func (m *heapModel) Push(t *rapid.T) {
	pos := new(uint32)
	m.held = append(m.held, pos)
	m.heap.Push(knot{rapid.IntRange(0, 30).Draw(t, "value"), pos})
}

// one draws an item, by its place in the list.
func (m *heapModel) one(t *rapid.T) int {
	if len(m.held) == 0 {
		t.Skip("nothing is there")
	}
	return rapid.IntRange(0, len(m.held)-1).Draw(t, "item")
}

func (m *heapModel) Remove(t *rapid.T) {
	i := m.one(t)
	if m.heap.Remove(int(*m.held[i] - 1)); *m.held[i] != 0 {
		t.Fatalf("an item that was taken out was told %d", *m.held[i])
	}
	m.held = slices.Delete(m.held, i, i+1)
}

func (m *heapModel) Set(t *rapid.T) {
	pos := m.held[m.one(t)]
	m.heap.Set(int(*pos-1), knot{rapid.IntRange(0, 30).Draw(t, "value"), pos})
}

func (m *heapModel) Build(t *rapid.T) {
	for i := range m.heap {
		m.heap[i].value = rapid.IntRange(0, 30).Draw(t, "value")
	}
	m.heap.Build()
}

func (m *heapModel) verify(t *rapid.T) {
	if len(m.heap) != len(m.held) {
		t.Fatalf("the heap has %d items, want %d", len(m.heap), len(m.held))
	}
	for i := range m.heap {
		if at := *m.heap[i].pos; at != uint32(i+1) {
			t.Fatalf("the item at %d was told %d", i, at)
		}
		if i > 0 && m.heap[i].value < m.heap[(i-1)/2].value {
			t.Fatalf("the item at %d comes before the one above it", i)
		}
	}
}

func TestAHeapKeepsItsOrderAndTellsPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m heapModel
		t.Repeat(map[string]func(*rapid.T){
			"push": m.Push, "push more": m.Push, "remove": m.Remove, "set": m.Set, "build": m.Build, "": m.verify,
		})
	})
}

// A take fixes the heaps of lanes and shares: it must not make garbage.
func TestAHeapAllocatesNothingWhenItemsMove(t *testing.T) {
	places := make([]uint32, 100)
	var h Heap[knot, *knot]
	for i := range places {
		h.Push(knot{i, &places[i]})
	}
	n := testing.AllocsPerRun(100, func() {
		h.Set(0, knot{h[len(h)-1].value + 1, h[0].pos})
		last := h[len(h)-1]
		h.Remove(len(h) - 1)
		h.Push(last)
	})
	if n != 0 {
		t.Errorf("a move allocates %v times", n)
	}
}
