package storage

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is what a store should hold, in maps.
type model struct {
	packets map[PacketID]Packet
	queues  map[uint32]string
	marks   Marks
	batches uint64
	epoch   uint64 // starts so far
	stored  uint64 // epoch of the last batch
}

// draw puts a random batch into b and into the model.
func (m *model) draw(t *rapid.T, b *Batch) {
	type place struct { // what must be unique, whatever the priority
		queue uint32
		seq   uint64
	}
	live := map[place]PacketID{}
	for id := range m.packets {
		live[place{id.Queue, id.Seq}] = id
	}
	put := map[PacketID]int{}
	most := 30
	for range rapid.IntRange(0, most).Draw(t, "operations") {
		id := PacketID{
			Queue:    rapid.Uint32Range(1, 3).Draw(t, "queue"),
			Priority: rapid.Uint32Range(0, 2).Draw(t, "priority"),
			Seq:      rapid.Uint64Range(1<<63-20, 1<<63+20).Draw(t, "seq"),
		}
		at := place{id.Queue, id.Seq}
		if old, has := live[at]; has {
			removed := Removed{Expires: m.packets[old].Expiry != 0, Large: IsLarge(len(m.packets[old].Payload))}
			op, here := put[old]
			if !here && rapid.Bool().Draw(t, "replace") {
				p := modelPacket(t, id.Seq)
				put[old], m.packets[old] = b.Replace(old, &p, removed), p
				continue
			}
			if here {
				b.Cancel(op)
				delete(put, old)
			} else {
				b.Delete(old, removed)
			}
			delete(live, at)
			delete(m.packets, old)
			if !here && rapid.Bool().Draw(t, "put again") {
				p := modelPacket(t, id.Seq)
				put[old], live[at], m.packets[old] = b.Put(old, &p), old, p
			}
			continue
		}
		p := modelPacket(t, id.Seq)
		put[id], live[at], m.packets[id] = b.Put(id, &p), id, p
	}
	for range rapid.IntRange(0, 2).Draw(t, "queue operations") {
		id := rapid.Uint32Range(1, 3).Draw(t, "queue")
		if _, has := m.queues[id]; has {
			b.DeleteQueue(id)
			delete(m.queues, id)
		} else {
			m.queues[id] = rapid.SampledFrom([]string{"", "a", "jobs"}).Draw(t, "name")
			b.PutQueue(Queue{ID: id, Name: []byte(m.queues[id]), New: rapid.Bool().Draw(t, "new") && m.batches == 0})
		}
	}
	if b.Len() == 0 {
		return
	}
	m.batches++
	m.stored = m.epoch
	if rapid.Bool().Draw(t, "marks") {
		m.marks = Marks{NextSeq: 1<<63 + m.batches, LowSeq: 1<<63 - m.batches, NextQueue: uint32(m.batches)}
		b.SetMarks(m.marks)
	}
}

func modelPacket(t *rapid.T, seq uint64) Packet {
	p := Packet{Payload: bytes.Repeat([]byte{byte(seq)}, rapid.SampledFrom([]int{0, 10, 1024, 1025, 9000}).Draw(t, "payload"))}
	if rapid.Bool().Draw(t, "expires") {
		p.Expiry = 4_000_000_000_000
	}
	if rapid.Bool().Draw(t, "key") {
		p.Key = fmt.Append([]byte{}, seq%3)
	}
	return p
}

// check holds a store against the model.
func (m *model) check(t *rapid.T, s *Store) {
	if err := s.settle(); err != nil {
		t.Fatal(err)
	}
	var tally Tally
	var found []PacketID
	err := s.Packets(func(id PacketID, meta *Meta) error {
		want, has := m.packets[id]
		if !has {
			return fmt.Errorf("packet %v should not be there", id)
		}
		if meta.Expiry != want.Expiry || !bytes.Equal(meta.Key, want.Key) || (meta.Key == nil) != (want.Key == nil) ||
			int(meta.Size) != len(want.Key)+len(want.Payload) || meta.Large != IsLarge(len(want.Payload)) {
			return fmt.Errorf("packet %v is %+v", id, meta)
		}
		tally.Add(id, meta.Expiry)
		found = append(found, id)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != len(m.packets) || !slices.IsSortedFunc(found, PacketID.Compare) {
		t.Fatalf("%d packets instead of %d, or out of order: %v", len(found), len(m.packets), found)
	}
	if err := s.Verify(tally); err != nil {
		t.Fatal(err)
	}
	if c := s.Control(); c.Batch != m.batches || c.Marks != m.marks || c.Epoch != m.stored || s.Epoch() != m.epoch {
		t.Fatalf("control record %+v in epoch %d, want batch %d, marks %+v, epoch %d of %d",
			c, s.Epoch(), m.batches, m.marks, m.stored, m.epoch)
	}
	payloads := 0
	if err := s.scan(payloadPrefix, func(_, _ []byte) error { payloads++; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, p := range m.packets {
		if IsLarge(len(p.Payload)) {
			payloads--
		}
	}
	if payloads != 0 {
		t.Fatalf("%d payload records too many", payloads)
	}
	queues := map[uint32]string{}
	if err := s.Queues(func(q Queue) error { queues[q.ID] = string(q.Name); return nil }); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(queues, m.queues) {
		t.Fatalf("queues %v, want %v", queues, m.queues)
	}
	m.checkRead(t, s)
}

// checkRead reads every place there is, in an order that sorts nothing.
func (m *model) checkRead(t *rapid.T, s *Store) {
	var ids []PacketID
	for seq := uint64(1<<63 + 20); seq >= 1<<63-20; seq-- {
		for queue := range uint32(4) {
			for priority := range uint32(3) {
				ids = append(ids, PacketID{queue, priority, seq})
			}
		}
	}
	some := ids[:rapid.IntRange(0, len(ids)).Draw(t, "reads")]
	calls := 0
	var p Packet
	err := s.Read(some, func(i int, rec []byte) error {
		calls++
		want, has := m.packets[some[i]]
		if !has || rec == nil {
			if has || rec != nil {
				return fmt.Errorf("packet %v: found %v, want %v", some[i], rec != nil, has)
			}
			return nil
		}
		if err := DecodeRecord(rec, &p); err != nil || !same(p, want) {
			return fmt.Errorf("packet %v reads as %+v, %w", some[i], p, err)
		}
		return nil
	})
	if err != nil || calls != len(some) {
		t.Fatalf("%d calls for %d packets, %v", calls, len(some), err)
	}
}

func TestStoreDoesWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "model")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		m := &model{packets: map[PacketID]Packet{}, queues: map[uint32]string{}, marks: firstMarks()}
		var s *Store
		reopen := func() {
			if s != nil {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if s, err = Open(dir, Options{Window: minWindow}); err != nil {
				t.Fatal(err)
			}
			m.epoch++
		}
		reopen()
		defer func() {
			if s != nil { // nil when it did not open again
				s.Close()
			}
		}()
		var b Batch
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			b.Reset()
			m.draw(t, &b)
			if err := s.Apply(&b); err != nil {
				t.Fatal(err)
			}
			if rapid.IntRange(0, 3).Draw(t, "reopen") == 0 {
				reopen()
			}
			m.check(t, s)
		}
	})
}
