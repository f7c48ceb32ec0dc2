package storage

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"testing"
)

// flipPayload changes one byte of a numbered payload in a table, and back when it is called again.
func flipPayload(t *testing.T, table string, i, size int) {
	t.Helper()
	whole, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(whole, numbered(i, size)[:8])
	if at < 0 {
		t.Fatalf("payload %d is not in the table", i)
	}
	flip(t, table, int64(at+size/2))
}

func TestScanOfALiveSnapshotThatEndsEarlyIsAnError(t *testing.T) {
	const size = 400
	s, ids, table := inOneTable(t, 400, size)
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	flipPayload(t, table, 200, size)
	for name, r := range map[string]QueueRange{"all": {}, "one": {1, 1}} {
		seen := 0
		err := n.Records(r, func(PacketID, []byte, error) error { seen++; return nil })
		if !errors.Is(err, ErrDamaged) || seen >= len(ids) {
			t.Errorf("queues %s: %d records of %d, and %v", name, seen, len(ids), err)
		}
		if err := n.Packets(r, func(PacketID, *Meta) error { return nil }); !errors.Is(err, ErrDamaged) {
			t.Errorf("queues %s, packets: %v", name, err)
		}
	}
	// What is bad elsewhere does not matter.
	err = errors.Join(
		n.Packets(QueueRange{2, 9}, func(PacketID, *Meta) error { return nil }),
		n.Payloads(func(uint32, uint64, int64) error { return nil }))
	if err != nil {
		t.Errorf("queues that are not in the block: %v", err)
	}
}

func TestRecordsOfALiveSnapshotCheckTheirPayloads(t *testing.T) {
	const size = 5000
	s, _, table := inOneTable(t, 40, size)
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	flipPayload(t, table, 7, size)
	var bad []uint64
	err = n.Records(QueueRange{}, func(id PacketID, _ []byte, damage error) error {
		if damage != nil {
			bad = append(bad, id.Seq)
		}
		return nil
	})
	if !errors.Is(err, ErrDamaged) || !slices.Equal(bad, []uint64{7}) {
		t.Errorf("records %v are damaged, and %v", bad, err)
	}
	if err := n.Payloads(func(uint32, uint64, int64) error { return nil }); !errors.Is(err, ErrDamaged) {
		t.Errorf("payloads: %v", err)
	}
	if err := n.Packets(QueueRange{}, func(PacketID, *Meta) error { return nil }); err != nil {
		t.Errorf("packets, which are not in that block: %v", err)
	}
}

func TestScanOfQueuesThatEndsEarlyIsAnError(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	var b Batch
	const queues = 300
	for i := range uint32(queues) {
		b.PutQueue(Queue{ID: 1 + i, Name: numbered(int(i), 100)})
	}
	applied(t, s, &b)
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	flipPayload(t, tableFiles(t, dir)[0], 200, 100)
	seen := 0
	if err := n.Queues(func(Queue) error { seen++; return nil }); !errors.Is(err, ErrDamaged) || seen >= queues {
		t.Errorf("%d queues of %d, and %v", seen, queues, err)
	}
}
