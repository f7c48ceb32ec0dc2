package tree

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// checkTree verifies a lone tree: its shape, order and links, and that it holds the wanted places.
func checkTree(t interface{ Fatal(...any) }, f *Forest, tr *Tree, want []Place) {
	got := make([]Place, 0, len(want))
	nodes, err := check(f, tr, func(k Place, id uint32) bool {
		got = append(got, k)
		return id == uint32(k.Seq)+1
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Fatal("the tree holds other places than it should", len(got), len(want))
	}
	if nodes != f.Live {
		t.Fatal("nodes leaked", f.Live, nodes)
	}
}

func comparePlaces(a, b Place) int {
	switch {
	case a.Before(b):
		return -1
	case b.Before(a):
		return 1
	}
	return 0
}

// treeModel drives a tree and a sorted slice with the same calls.
type treeModel struct {
	f    Forest
	tr   Tree
	want []Place
}

func (m *treeModel) insert(t *rapid.T, k Place) {
	i, dup := slices.BinarySearchFunc(m.want, k, comparePlaces)
	if ok := m.f.Insert(&m.tr, k, uint32(k.Seq)+1); ok == dup {
		t.Fatalf("insert of %v = %v", k, ok)
	}
	if !dup {
		m.want = slices.Insert(m.want, i, k)
	}
}

func (m *treeModel) remove(t *rapid.T, k Place) {
	i, there := slices.BinarySearchFunc(m.want, k, comparePlaces)
	if ok := m.f.Remove(&m.tr, k); ok != there {
		t.Fatalf("remove of %v = %v", k, ok)
	}
	if there {
		m.want = slices.Delete(m.want, i, i+1)
	}
}

// run calls f for a run of places, close together or with gaps, up or down.
func (m *treeModel) run(t *rapid.T, f func(*rapid.T, Place)) {
	k := Place{rapid.Uint32Range(0, 5).Draw(t, "priority"), rapid.Uint64Range(1<<20, 1<<20+2000).Draw(t, "seq")}
	n, step := rapid.IntRange(1, 300).Draw(t, "n"), rapid.SampledFrom([]int64{-3, -1, 1, 2}).Draw(t, "step")
	for range n {
		f(t, k)
		k.Seq += uint64(step)
	}
}

func (m *treeModel) InsertScattered(t *rapid.T) {
	r := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
	for range 300 {
		m.insert(t, Place{r.Uint32N(6), 1<<20 + r.Uint64N(2000)})
	}
}

func (m *treeModel) RemoveScattered(t *rapid.T) {
	r := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
	for n := len(m.want) * 2 / 3; n > 0; n-- {
		m.remove(t, m.want[r.IntN(len(m.want))])
	}
}

func (m *treeModel) RemoveEnds(t *rapid.T) {
	for n := rapid.IntRange(1, 200).Draw(t, "n"); n > 0 && len(m.want) > 1; n-- {
		m.remove(t, m.want[0])
		m.remove(t, m.want[len(m.want)-1])
	}
}

func (m *treeModel) Walk(t *rapid.T) {
	end, step := rapid.SampledFrom([]End{Newest, Oldest, Worst}).Draw(t, "end"), rapid.IntRange(1, 70).Draw(t, "step")
	order := slices.SortedFunc(slices.Values(m.want), func(a, b Place) int {
		if end.Earlier(a, b) {
			return -1
		}
		return 1
	})
	w := m.f.Walk(&m.tr, end)
	for i := 0; i < len(order); i += step {
		if w.Done() {
			t.Fatalf("the walk ended at %d of %d", i, len(order))
		}
		if k, _ := w.At(); k != order[i] {
			t.Fatalf("the walk is at %v, want %v", k, order[i])
		}
		w.Skip(step)
	}
	if !w.Done() {
		t.Fatal("the walk did not end")
	}
}

func (m *treeModel) Seek(t *rapid.T) {
	w := m.f.Walk(&m.tr, rapid.SampledFrom([]End{Newest, Oldest, Worst}).Draw(t, "end"))
	if w.Done() {
		t.Skip("nothing is there")
	}
	k := Place{rapid.Uint32Range(0, 6).Draw(t, "priority"), rapid.Uint64Range(1<<20, 1<<20+2000).Draw(t, "seq")}
	i, _ := slices.BinarySearchFunc(m.want, k, comparePlaces)
	there := i < len(m.want)
	if found := w.Seek(k); found != there || w.Place() != m.want[min(i, len(m.want)-1)] {
		t.Fatalf("Seek(%v) = %v at %v, want %v at %d", k, found, w.Place(), there, i)
	}
}

func (m *treeModel) verify(t *rapid.T) {
	checkTree(t, &m.f, &m.tr, m.want)
	if len(m.want) == 0 {
		return
	}
	if k, _ := m.f.Lowest(&m.tr); k != m.want[0] {
		t.Fatalf("lowest = %v, want %v", k, m.want[0])
	}
	i, _ := slices.BinarySearchFunc(m.want, Place{m.want[0].Priority, ^uint64(0)}, comparePlaces)
	if k, _ := m.f.Newest(&m.tr); k != m.want[i-1] {
		t.Fatalf("newest = %v, want %v", k, m.want[i-1])
	}
}

func TestTreeDoesWhatASortedSliceDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m treeModel
		t.Repeat(map[string]func(*rapid.T){
			"insert a run":     func(t *rapid.T) { m.run(t, m.insert) },
			"remove a run":     func(t *rapid.T) { m.run(t, m.remove) },
			"insert scattered": m.InsertScattered, "remove scattered": m.RemoveScattered,
			"remove the ends": m.RemoveEnds, "walk": m.Walk, "seek": m.Seek, "": m.verify,
		})
	})
}

// Nodes stay nearly full under the ways queues grow, and half full whatever is removed.
func TestTreeSpaceIsBounded(t *testing.T) {
	const n = 30_000
	sequence := make([]Place, n)
	for i := range sequence {
		sequence[i] = Place{1, uint64(i)}
	}
	bands := make([]Place, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range bands {
		bands[i] = Place{r.Uint32N(10) + 1, uint64(i)}
	}
	backwards := slices.Clone(bands)
	for i := range backwards {
		backwards[i].Seq = n - backwards[i].Seq - 1
	}
	for name, row := range map[string]struct {
		places []Place
		fill   float64
	}{
		"one priority, ascending":   {sequence, 0.96},
		"ten priorities, ascending": {bands, 0.94},
		"ten priorities, falling":   {backwards, 0.94},
		"shuffled":                  {nil, 0.60},
	} {
		t.Run(name, func(t *testing.T) {
			if row.places == nil {
				row.places = slices.Clone(sequence)
				r.Shuffle(n, func(i, j int) { row.places[i], row.places[j] = row.places[j], row.places[i] })
			}
			var f Forest
			var tr Tree
			for _, k := range row.places {
				f.Insert(&tr, k, uint32(k.Seq)+1)
			}
			if fill := float64(n) / float64(f.Live) / fan; fill < row.fill {
				t.Errorf("nodes are %.2f full, want %.2f", fill, row.fill)
			}
			order := slices.Clone(row.places)
			r.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
			for _, k := range order[:n*9/10] {
				f.Remove(&tr, k)
			}
			if fill := float64(tr.Count) / float64(f.Live) / fan; fill < 0.40 {
				t.Errorf("after random removal nodes are %.2f full, want 0.40", fill)
			}
			checkTree(t, &f, &tr, slices.SortedFunc(slices.Values(order[n*9/10:]), comparePlaces))
		})
	}
}

// Random removal and short runs of inserts, round after round, in a tree of three levels.
func TestTreeStaysInShapeUnderChurn(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var f Forest
	var tr Tree
	held := map[Place]bool{}
	for round := range 60 {
		for len(held) < 9000 {
			k, step := Place{r.Uint32N(20), r.Uint64N(1 << 14)}, uint64(r.IntN(5)-2)
			for range r.IntN(40) {
				if f.Insert(&tr, k, uint32(k.Seq)+1) {
					held[k] = true
				}
				k.Seq = (k.Seq + step) % (1 << 14)
			}
		}
		order := slices.SortedFunc(maps.Keys(held), comparePlaces)
		checkTree(t, &f, &tr, order)
		keep := 1 + r.IntN(8)
		for i, k := range order {
			// Whole stretches go, and between them some of what is left.
			if i/(200*keep)%2 == round%2 || r.IntN(keep) == 0 {
				f.Remove(&tr, k)
				delete(held, k)
			}
		}
		checkTree(t, &f, &tr, slices.SortedFunc(maps.Keys(held), comparePlaces))
	}
}

func TestATreeOfOnePacketNeedsNoNode(t *testing.T) {
	var f Forest
	var tr Tree
	one, two := Place{3, 1 << 40}, Place{3, 1<<40 + 1}
	if !f.Insert(&tr, one, 7) || f.Live != 0 {
		t.Fatalf("the first packet takes %d nodes", f.Live)
	}
	if f.Remove(&tr, two) {
		t.Fatal("another packet was removed")
	}
	for _, end := range []End{Newest, Oldest} {
		w := f.Walk(&tr, end)
		if k, id := w.At(); w.Done() || k != one || id != 7 {
			t.Fatalf("the walk is at packet %d, %v", id, k)
		}
		if w.Next(); !w.Done() {
			t.Fatal("the walk did not end")
		}
	}
	if f.Insert(&tr, one, 8) {
		t.Fatal("two packets have one place")
	}
	if !f.Insert(&tr, two, 8) || f.Live != 1 || !f.Remove(&tr, one) || !f.Remove(&tr, two) || f.Live != 0 {
		t.Fatalf("after two packets %d nodes are left", f.Live)
	}
}
