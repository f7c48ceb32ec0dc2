package storage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

// flipPayload changes one byte of a numbered payload in a table, and back
// when it is called again.
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

func TestBadBlockOfPayloadsIsRefusedAtTheStartAlsoWhenALossIsAccepted(t *testing.T) {
	const size = 5000
	s, ids, table := inOneTable(t, 40, size)
	dir := s.folder.path
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	flipPayload(t, table, 7, size)
	for _, o := range []Options{{}, {AcceptLoss: true}} {
		if s, err := Open(dir, o); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrLoss) {
			if err == nil {
				s.Close()
			}
			t.Errorf("with %+v it opens with %v", o, err)
		}
	}
	flipPayload(t, table, 7, size)
	s = openTest(t, dir, Options{})
	if missing := unread(t, s, ids, size); len(missing) > 0 {
		t.Errorf("with the byte as it was packets %v are missing", missing)
	}
}

func TestCompactLeavesTablesWithABadBlockAsTheyAre(t *testing.T) {
	const size = 5000
	s, ids, table := inOneTable(t, 40, size)
	flipPayload(t, table, 7, size)
	if err := s.Compact(t.Context(), nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("compacting gives %v", err)
	}
	flipPayload(t, table, 7, size)
	if missing := unread(t, s, ids, size); len(missing) > 0 {
		t.Errorf("packets %v are missing", missing)
	}
}

func TestTablesWithABadBlockAreNotMerged(t *testing.T) {
	const size = 5000
	s, ids, table := inOneTable(t, 40, size)
	flipPayload(t, table, 7, size)
	wanting := tidier{quiet: quietSeconds, unknown: true}
	now := scene{short: true, table: 1}
	if !wanting.wants(&now) {
		t.Fatal("no merge is wanted: the test proves nothing")
	}
	if wanting.sound(s) || wanting.wants(&now) {
		t.Error("they are merged")
	}
	flipPayload(t, table, 7, size)
	if missing := unread(t, s, ids, size); len(missing) > 0 {
		t.Errorf("packets %v are missing", missing)
	}
	for range hinderedPause {
		if _, ok := wanting.look(s); !ok {
			t.Fatal("the store has failed")
		}
	}
	if !wanting.sound(s) {
		t.Error("a sound table is not merged later")
	}
}

func TestCompactHoldsWhatIsLeftAgainstTheControlRecord(t *testing.T) {
	s, ids, _ := inOneTable(t, 40, 100)
	if err := s.db.Update(func(txn *badger.Txn) error { return txn.Delete(appendPacketKey(nil, ids[3])) }); err != nil {
		t.Fatal(err)
	}
	var mismatch *MismatchError
	if err := s.Compact(t.Context(), nil); !errors.As(err, &mismatch) || mismatch.Got != 39 {
		t.Errorf("compacting gives %v", err)
	}
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
	s := openTest(t, dir, Options{})
	var b Batch
	const queues = 300
	for i := range uint32(queues) {
		b.PutQueue(Queue{ID: 1 + i, Name: numbered(int(i), 100)})
	}
	if err := errors.Join(s.Apply(&b), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, dir, Options{})
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

func tableFiles(t *testing.T, dir string) []string {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, dbName, "*"+tableSuffix))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	return tables
}
