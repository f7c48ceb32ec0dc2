package storage

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/holdfast-queue/holdfast/storage/content"
	"os"
	"slices"
	"strings"
	"testing"
)

// inOneTable returns an open store whose packets are all in one table, and
// the table. Each payload has size bytes and begins with the packet's sequence.
func inOneTable(t *testing.T, packets, size int) (s *Store, ids []content.PacketID, name string) {
	t.Helper()
	dir := t.TempDir()
	s = smallStore(t, dir)
	var b content.Batch
	for i := range packets {
		ids = append(ids, content.PacketID{Queue: 1, Priority: 1, Seq: uint64(i)})
		b.Put(ids[i], &content.Packet{Payload: numbered(i, size)})
	}
	if err := errors.Join(s.Apply(&b), s.Close()); err != nil {
		t.Fatal(err)
	}
	return smallStore(t, dir), ids, tableFiles(t, dir)[0]
}

func numbered(i, size int) []byte {
	return append(fmt.Appendf(nil, "<%06d>", i), bytes.Repeat([]byte{'.'}, size-8)...)
}

// unread reads all of ids, holds what it gets against numbered, and returns
// those that Read has no record of.
func unread(t *testing.T, s *Store, ids []content.PacketID, size int) (missing []int) {
	t.Helper()
	calls := 0
	s.Read(ids, func(i int, rec []byte, damage error) {
		calls++
		if (rec == nil) != (damage != nil) {
			t.Errorf("packet %v has a record: %v, and %v", ids[i], rec != nil, damage)
		}
		if rec == nil {
			missing = append(missing, i)
			return
		}
		var p content.Packet
		if err := content.DecodeRecord(rec, &p); err != nil || !bytes.Equal(p.Payload, numbered(int(ids[i].Seq), size)) {
			t.Errorf("packet %v reads as %.20q, %v", ids[i], p.Payload, err)
		}
	})
	if calls != len(ids) {
		t.Errorf("%d calls for %d packets", calls, len(ids))
	}
	return missing
}

// flip changes one byte of a file, and back when it is called again.
func flip(t *testing.T, name string, at int64) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var b [1]byte
	if _, err := file.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x90
	if _, err := file.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}

func TestDamageOfOnePacketLeavesTheOthersReadable(t *testing.T) {
	const size = 5000
	set := func(key, value []byte) func(*entries) {
		return func(e *entries) { e.put(key, value, 0, true) }
	}
	bad := content.PacketID{Queue: 1, Priority: 1, Seq: 7}
	head, payload := content.AppendPacketKey(nil, bad), content.AppendPayloadKey(nil, bad)
	rows := map[string]struct {
		change func(*entries)
		says   string
	}{
		// A lookup of the first key of the next block looks into this one, too.
		"payload block with a wrong checksum": {nil, "payload"},
		"payload missing":                     {func(e *entries) { e.delete(payload) }, "missing"},
		"payload too short":                   {set(payload, make([]byte, size-1)), "4999 bytes instead of 5000"},
		"record of nonsense":                  {set(head, []byte{0xff}), "not a valid record"},
		"record missing":                      {func(e *entries) { e.delete(head) }, "not there"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			s, ids, table := inOneTable(t, 40, size)
			if row.change != nil {
				behind(t, s, row.change)
				inTables(t, s)
			} else {
				whole, err := os.ReadFile(table)
				if err != nil {
					t.Fatal(err)
				}
				flip(t, table, int64(bytes.Index(whole, numbered(7, size))+2000))
			}
			for from, to := range map[int]int{0: len(ids), 5: 10} { // as a run, and looked up
				missing := unread(t, s, ids[from:to], size)
				if len(missing) == 2 && row.change == nil {
					missing = missing[:1]
				}
				if !slices.Equal(missing, []int{7 - from}) {
					t.Errorf("of the packets from %d on, %v cannot be read", from, missing)
				}
			}
			err := damageOf(s, bad)
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), row.says) || !strings.Contains(err.Error(), fmt.Sprint(bad)) {
				t.Errorf("it reads with %v", err)
			}
			t.Log(err)
			if err := damageOf(s, ids[9]); err != nil {
				t.Errorf("a sound packet reads with %v", err)
			}
		})
	}
}

func TestDamagedBlockHidesOnlyWhatIsInIt(t *testing.T) {
	if testing.Short() {
		t.Skip("folders are opened one after the other")
	}
	const packets, size = 400, 400
	s, ids, table := inOneTable(t, packets, size)
	whole, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	from, to := bytes.Index(whole, numbered(0, size)), bytes.Index(whole, numbered(packets-1, size))
	if from < 0 || to < from {
		t.Fatal("the packets are not in the table")
	}
	// Every place in a little more than a block, so also the bytes behind the entries that Badger
	// trusts before it looks at the checksum.
	const block = 4400
	var sparse []content.PacketID // so that the iterator passes over blocks that hold none of them
	for i := 0; i < packets; i += block/size + 3 {
		sparse = append(sparse, ids[i])
	}
	seen := 0
	for at := from + block; at < from+2*block; at += step(1, 7) {
		flip(t, table, int64(at))
		missing := unread(t, s, ids, size)
		for _, i := range unread(t, s, sparse, size) {
			if !slices.Contains(missing, int(sparse[i].Seq)) {
				t.Fatalf("byte %d: packet %v can be read, but not over a bad block", at, sparse[i])
			}
		}
		flip(t, table, int64(at))
		if len(missing) > 0 {
			seen++
		}
		if len(missing) > block/size || len(missing) > 0 && missing[len(missing)-1]-missing[0] != len(missing)-1 {
			t.Fatalf("byte %d: packets %v cannot be read", at, missing)
		}
	}
	if seen < block/10/step(1, 7) {
		t.Errorf("only %d flips were seen", seen)
	}
	if missing := unread(t, s, ids, size); missing != nil {
		t.Errorf("sound again, packets %v cannot be read", missing)
	}
}

func TestPacketsThatTheDeviceDoesNotGiveAreDamaged(t *testing.T) {
	s, ids, table := inOneTable(t, 40, 5000)
	whole, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	// A page of a mapped file that is no longer there faults as one that the device does not give.
	if err := os.Truncate(table, 0); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, len(ids)} { // looked up, and read as a run
		if missing := unread(t, s, ids[:n], 5000); len(missing) != n {
			t.Errorf("of %d packets %v cannot be read", n, missing)
		}
	}
	if err := damageOf(s, ids[3]); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), ids[3].String()) {
		t.Errorf("it reads with %v", err)
	}
	if err := os.WriteFile(table, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if missing := unread(t, s, ids, 5000); missing != nil {
		t.Errorf("with the data there, packets %v cannot be read", missing)
	}
}

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

func TestScanOfALiveSnapshotThatEndsEarlyIsALoss(t *testing.T) {
	const size = 400
	s, ids, table := inOneTable(t, 400, size)
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	flipPayload(t, table, 200, size)
	seen := 0
	err = n.Records(QueueRange{}, func(content.PacketID, []byte, error) error { seen++; return nil })
	if !errors.Is(err, ErrLoss) || seen >= len(ids) {
		t.Errorf("%d records of %d, and %v", seen, len(ids), err)
	}
	if err := n.Packets(func(content.PacketID, *content.Meta) error { return nil }); !errors.Is(err, ErrLoss) {
		t.Errorf("packets: %v", err)
	}
	// What is bad elsewhere does not matter.
	err = errors.Join(
		n.Records(QueueRange{2, 9}, func(content.PacketID, []byte, error) error { return nil }),
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
	err = n.Records(QueueRange{}, func(id content.PacketID, _ []byte, damage error) error {
		if damage != nil {
			bad = append(bad, id.Seq)
		}
		return nil
	})
	if err != nil || len(bad) == 0 || len(bad) > 2 || bad[0] != 7 { // see the lookup of the next one
		t.Errorf("records %v are damaged, and %v", bad, err)
	}
	if err := n.Packets(func(content.PacketID, *content.Meta) error { return nil }); err != nil {
		t.Errorf("packets, which are not in that block: %v", err)
	}
}

func TestASnapshotOfTablesThatRottedIsRefused(t *testing.T) {
	s, _, table := inOneTable(t, 400, 400)
	for _, rotten := range []bool{true, false} {
		flipPayload(t, table, 200, 400)
		n, err := s.Snapshot()
		if errors.Is(err, ErrDamaged) != rotten || (err == nil) == rotten {
			t.Errorf("a block that rotted: %v; a snapshot gives %v", rotten, err)
		}
		if err == nil {
			n.Close()
		}
	}
}

func TestPacketThatMovesBackAfterItsDeletionIsThere(t *testing.T) {
	s := smallStore(t, t.TempDir())
	p := content.Packet{Payload: []byte("work")}
	applied(t, s, one(5, p))
	inTables(t, s)
	var b content.Batch
	b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: 5}, content.Removed{})
	applied(t, s, &b)
	applied(t, s, one(5, p))
	for _, where := range []string{"pending", "in tables"} {
		if err := damageOf(s, content.PacketID{Queue: 1, Priority: 1, Seq: 5}); err != nil {
			t.Errorf("%s: %v", where, err)
		}
		if n := s.layers.open.bytes; where == "in tables" && n != 0 {
			t.Errorf("%d bytes are pending", n)
		}
		inTables(t, s)
	}
	if n := s.tables.List().Entries; n != 4 {
		t.Errorf("tables have %d entries, want the packet twice and two control records", n)
	}
}
