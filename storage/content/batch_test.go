package content

import (
	"bytes"
	"slices"
	"testing"
)

func TestABatchGivesTheMemoryOfALargeCallBack(t *testing.T) {
	var b Batch
	for i := range uint64(2 * keepEntries) {
		b.Delete(PacketID{1, 1, i}, Removed{})
		b.DeleteDelivery(i, StoredDelivery)
	}
	b.Reset()
	if cap(b.entries) > keepEntries || b.at != nil {
		t.Errorf("an empty batch keeps %d entries", cap(b.entries))
	}
}

// ops lists what a batch would write.
func ops(b *Batch) (all []Op) {
	b.Each(func(o Op) { all = append(all, o) })
	return all
}

func TestLastCallForAQueueWins(t *testing.T) {
	old, fresh, counts := Queue{ID: 1, Name: []byte("old")}, Queue{ID: 1, Name: []byte("new"), New: true}, Counters{Acked: 7}
	rows := map[string]struct {
		fill func(b *Batch)
		want []OpKind
		name string
	}{
		"defined":                      {func(b *Batch) { b.PutQueue(fresh) }, []OpKind{OpPutQueue}, "new"},
		"defined twice":                {func(b *Batch) { b.PutQueue(fresh); b.PutQueue(old) }, []OpKind{OpPutQueue}, "old"},
		"new and gone":                 {func(b *Batch) { b.PutQueue(fresh); b.DeleteQueue(1) }, nil, ""},
		"new, changed and gone":        {func(b *Batch) { b.PutQueue(fresh); b.PutQueue(old); b.DeleteQueue(1) }, nil, ""},
		"changed and gone":             {func(b *Batch) { b.PutQueue(old); b.DeleteQueue(1) }, []OpKind{OpDeleteQueue}, ""},
		"gone and new again":           {func(b *Batch) { b.DeleteQueue(1); b.PutQueue(fresh) }, []OpKind{OpDeleteQueue, OpPutQueue}, "new"},
		"counted":                      {func(b *Batch) { b.PutCounters(1, counts) }, []OpKind{OpPutCounters}, ""},
		"counted and gone":             {func(b *Batch) { b.PutCounters(1, counts); b.DeleteQueue(1) }, []OpKind{OpDeleteQueue}, ""},
		"new, counted and gone":        {func(b *Batch) { b.PutQueue(fresh); b.PutCounters(1, counts); b.DeleteQueue(1) }, nil, ""},
		"changed and counted":          {func(b *Batch) { b.PutQueue(old); b.PutCounters(1, counts) }, []OpKind{OpPutQueue}, "old"},
		"gone, new again and gone":     {func(b *Batch) { b.DeleteQueue(1); b.PutQueue(fresh); b.DeleteQueue(1) }, []OpKind{OpDeleteQueue}, ""},
		"new, gone, new again":         {func(b *Batch) { b.PutQueue(fresh); b.DeleteQueue(1); b.PutQueue(fresh) }, []OpKind{OpPutQueue}, "new"},
		"deleted twice, never defined": {func(b *Batch) { b.DeleteQueue(1); b.DeleteQueue(1) }, []OpKind{OpDeleteQueue}, ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			var b Batch
			row.fill(&b)
			all := ops(&b)
			var kinds []OpKind
			for _, o := range all {
				kinds = append(kinds, o.Kind)
				if o.Kind == OpPutQueue && string(o.Queue.Name) != row.name {
					t.Errorf("the name is %q, want %q", o.Queue.Name, row.name)
				}
			}
			if !slices.Equal(kinds, row.want) {
				t.Errorf("operations %v, want %v", kinds, row.want)
			}
			if len(row.want) == 0 && b.Bytes() != 0 {
				t.Errorf("%d bytes of nothing", b.Bytes())
			}
		})
	}
}

func TestRecordsStayWhereTheyAreWhileTheBatchGrows(t *testing.T) {
	var b Batch
	for range 3 { // again with the memory of the round before
		b.Reset()
		var records [][]byte
		for i := range 3000 {
			size := i % 700
			if i%500 == 499 {
				size = chunkSize + 5
			}
			op := b.Put(PacketID{1, 1, uint64(i)}, &Packet{Payload: bytes.Repeat([]byte{byte(i)}, size)})
			records = append(records, b.Record(op))
		}
		for i, rec := range records {
			var p Packet
			if err := DecodeRecord(rec, &p); err != nil {
				t.Fatal(i, err)
			}
			if bytes.Count(p.Payload, []byte{byte(i)}) != len(p.Payload) {
				t.Fatalf("record %d was overwritten", i)
			}
		}
	}
}

func TestResetBatchIsEmptyAndTakesNoMemoryAgain(t *testing.T) {
	var b Batch
	p := Packet{Key: make([]byte, 8), Payload: make([]byte, 128)}
	fill := func() {
		b.Reset()
		for i := range 1000 {
			b.Put(PacketID{1, 1, uint64(i)}, &p)
			b.Delete(PacketID{1, 1, uint64(i)}, Removed{})
		}
		b.SetMarks(Marks{NextSeq: 1})
	}
	fill()
	if n := allocations(fill); n > 0 {
		t.Errorf("%v allocations", n)
	}
	b.Reset()
	if b.Len() != 0 || b.Bytes() != 0 || b.Memory() != 0 || len(ops(&b)) != 0 || b.hasMarks {
		t.Errorf("after Reset: %d entries, %d bytes", b.Len(), b.Bytes())
	}
}

func TestPuttingDeliveryStatesTakesNoMemory(t *testing.T) {
	var b Batch
	d := Delivery{State: Claimed, Until: 1_900_000_000_000, Attempts: 1, Token: 1 << 63, FirstClaim: 1, LastClaim: 1, Consumer: "worker-1"}
	fill := func() {
		b.Reset()
		for i := range uint64(1000) {
			d.Identity = 1<<63 + i
			b.PutDelivery(&d, 0)
			b.PutNote(NoteID{d.Identity, NoteProgress}, []byte("half"), StoredDelivery)
			b.Delete(PacketID{1, 1, d.Identity}, Removed{Stored: StoredDelivery | StoredProgress, Identity: d.Identity})
		}
	}
	fill()
	if n := allocations(fill); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if b.Len() != 1000 {
		t.Errorf("%d entries for 1000 packets that were claimed and go", b.Len())
	}
}

func TestAnItemThatComesAndGoesInOneBatchIsNotWritten(t *testing.T) {
	var b Batch
	b.PutHead(&Head{ID: 1, Kind: String, Name: []byte("a"), Version: 2, Value: make([]byte, 2000)}, Mark{})
	b.PutField(&Field{Hash: 3, ID: 4, Name: []byte("f"), Version: 5, Value: []byte("x")}, Mark{})
	b.DeleteHead(1, Mark{Version: 2, Large: true})
	b.DeleteField(3, 4, Mark{Version: 5})
	if b.Len() != 0 || b.Bytes() != 0 || len(ops(&b)) != 0 {
		t.Errorf("%d entries, %d bytes, operations %+v", b.Len(), b.Bytes(), ops(&b))
	}
}

func TestTheValueThatABatchPutsIsAtHandUnlessItIsKept(t *testing.T) {
	var b Batch
	v := ValueID{ID: 1}
	h := Head{ID: 1, Kind: String, Name: []byte("a"), Version: 2}
	for _, step := range []struct {
		what string
		do   func()
		want int // length of the value, -1 for none
	}{
		{"nothing", func() {}, -1},
		{"small", func() { h.Value = []byte("abc"); b.PutHead(&h, Mark{}) }, 3},
		{"large", func() { h.Value = make([]byte, 3000); b.PutHead(&h, Mark{}) }, 3000},
		{"large and kept", func() { h.Value, h.Size, h.KeepValue = nil, 3000, true; b.PutHead(&h, Mark{}) }, 3000},
		{"gone", func() { b.DeleteHead(1, Mark{}) }, -1},
		{"kept from before", func() { b.PutHead(&h, Mark{}) }, -1},
	} {
		step.do()
		value, ok := b.Value(v)
		if ok != (step.want >= 0) || ok && len(value) != step.want {
			t.Errorf("%s: %d bytes, %v, want %d", step.what, len(value), ok, step.want)
		}
	}
}

// allocations is the least of some runs: other goroutines of the process count, too.
func allocations(fn func()) float64 {
	least := testing.AllocsPerRun(10, fn)
	for i := 0; i < 20 && least > 0; i++ {
		least = min(least, testing.AllocsPerRun(10, fn))
	}
	return least
}
