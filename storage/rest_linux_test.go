package storage

import (
	"testing"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

func TestAWalkGivesBackTheMemoryOfTheTables(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	const packets, size = 20_000, 100
	var b content.Batch
	for seq := range uint64(packets) {
		b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: seq}, &content.Packet{Payload: make([]byte, size)})
	}
	applied(t, s, &b)
	inTables(t, s)
	most, shown := 0, 0
	if err := s.Walk(Visitor{Uncounted: true, Packet: func(_ content.PacketID, _ *content.Meta, _ []byte, damage error) error {
		if shown++; shown == packets {
			most = inject.Mapped(t, dir+"/db")
		}
		return damage
	}}); err != nil || shown != packets {
		t.Fatalf("%d packets are shown: %v", shown, err)
	}
	if left := inject.Mapped(t, dir+"/db"); most < packets*size/2 || left > most/4 {
		t.Errorf("a walk took %d bytes of tables, and leaves %d", most, left)
	}
}
