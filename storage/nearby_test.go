package storage

import (
	"bytes"
	"github.com/holdfast-queue/holdfast/storage/content"
	"slices"
	"testing"
)

// pendingPackets returns a store where packets of size bytes wait to become tables, in batches of
// so many.
func pendingPackets(t *testing.T, packets, batch, size int) (s *Store, ids []content.PacketID) {
	t.Helper()
	s = openTest(t, t.TempDir(), Options{Window: 8 << 20})
	var b content.Batch
	for i := range packets {
		ids = append(ids, content.PacketID{Queue: 1, Priority: 1, Seq: uint64(i)})
		b.Put(ids[i], &content.Packet{Payload: numbered(i, size)})
		if (i+1)%batch == 0 || i == packets-1 {
			applied(t, s, &b)
		}
	}
	return s, ids
}

func holds(t *testing.T, r *readState, id content.PacketID, size int) {
	t.Helper()
	var p content.Packet
	rec, err := r.packet(id, false)
	if err == nil {
		err = content.DecodeRecord(rec, &p)
	}
	if err != nil || !bytes.Equal(p.Payload, numbered(int(id.Seq), size)) {
		t.Fatalf("packet %v reads as %.20q, %v", id, p.Payload, err)
	}
}

func TestNeighboursInTheJournalAreReadTogether(t *testing.T) {
	s, ids := pendingPackets(t, 200, 40, 100)
	for range 2 {
		r := s.readState()
		reads, last := 0, int64(0)
		for _, id := range ids {
			holds(t, r, id, 100)
			if r.near.from != last {
				reads, last = reads+1, r.near.from
			}
		}
		if reads > 4 {
			t.Errorf("%d packets that lie side by side take %d reads, from %v on", len(ids), reads, ids[0])
		}
		s.endRead(r)
		slices.Reverse(ids)
	}
}

func TestWhatIsWrittenAfterAReadIsReadAnew(t *testing.T) {
	s, ids := pendingPackets(t, 20, 20, 100)
	r := s.readState()
	defer s.endRead(r)
	for _, id := range ids {
		holds(t, r, id, 100)
	}
	for i := range 20 { // behind what was read, and over it
		id := content.PacketID{Queue: 1, Priority: 1, Seq: uint64(10 + i)}
		applied(t, s, one(id.Seq, content.Packet{Payload: numbered(int(id.Seq), 100)}))
	}
	for i := range 20 {
		holds(t, r, content.PacketID{Queue: 1, Priority: 1, Seq: uint64(10 + i)}, 100)
	}
}

func TestNeighboursAreReadWhereASegmentEnds(t *testing.T) {
	const size = 1000
	s, ids := pendingPackets(t, 5000, 7, size)
	if s.journal.Segments() < 2 {
		t.Fatal("the packets lie in one segment; several are expected")
	}
	for range 2 {
		if missing := unread(t, s, ids, size); missing != nil {
			t.Errorf("packets %v cannot be read", missing)
		}
		r := s.readState()
		for _, id := range ids {
			holds(t, r, id, size)
		}
		s.endRead(r)
		slices.Reverse(ids)
	}
}
