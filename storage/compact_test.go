package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

// leftover is what popped leaves in a store.
type leftover struct {
	packets map[PacketID]bool
	bytes   int64 // of keys and records
	control Control
}

// popped fills a store with n packets of 128 bytes and pops all but every
// keep-th, in no order.
func popped(t *testing.T, s *Store, n, keep int) leftover {
	t.Helper()
	const run = 500
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	left := leftover{packets: make(map[PacketID]bool)}
	var b Batch
	var gone []PacketID
	p := benchPacket()
	for at := range n {
		id := PacketID{1, 1 + uint32(at%200), 1<<63 + uint64(at)}
		binary.BigEndian.PutUint64(p.Key, id.Seq)
		op := b.Put(id, &p)
		if at%keep == 0 {
			left.packets[id] = true
			left.bytes += packetKeyLen + int64(len(b.Record(op)))
		} else {
			gone = append(gone, id)
		}
		if b.Len() == run || at == n-1 {
			applied(t, s, &b)
		}
	}
	rng.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
	for i, id := range gone {
		b.Delete(id, Removed{})
		if b.Len() == run || i == len(gone)-1 {
			applied(t, s, &b)
		}
	}
	left.control = s.Control()
	return left
}

func applied(t *testing.T, s *Store, b *Batch) {
	t.Helper()
	if err := s.Apply(b); err != nil {
		t.Fatal(err)
	}
	b.Reset()
}

// check holds a store against what must be left.
func (l leftover) check(t *testing.T, s *Store) {
	t.Helper()
	ids, tally := scanned(t, s)
	if len(ids) != len(l.packets) {
		t.Errorf("%d packets are there, want %d", len(ids), len(l.packets))
	}
	for _, id := range ids {
		if !l.packets[id] {
			t.Fatalf("packet %v came back", id)
		}
	}
	if err := s.Verify(tally); err != nil {
		t.Error(err)
	}
	got := s.Control()
	if got.Batch < l.control.Batch {
		t.Errorf("the control record is of batch %d, before %d", got.Batch, l.control.Batch)
	}
	got.Batch = l.control.Batch // fillers count
	if got != l.control {
		t.Errorf("the control record is %+v, want %+v", got, l.control)
	}
}

// deadEntries counts what is in the tables of a store and not live.
func deadEntries(t *testing.T, s *Store) (dead int) {
	t.Helper()
	for _, table := range s.db.Tables() {
		dead += int(table.KeyCount)
	}
	err := s.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			dead--
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dead
}

// mergedForAReader merges the levels while a reader may still see all that was
// popped: it is all kept, in the last level, where no other merge touches it.
func mergedForAReader(t *testing.T, s *Store, reader *badger.Txn) {
	t.Helper()
	c := compaction{s: s, progress: func(CompactProgress) {}}
	if err := c.merge(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	reader.Discard()
	if err := s.flatten(1); err != nil {
		t.Fatal(err)
	}
	if dead := deadEntries(t, s); dead < 1000 {
		t.Fatalf("only %d dead entries: the test proves nothing", dead)
	}
}

func TestCompactLeavesNothingThatWasDeleted(t *testing.T) {
	for name, reader := range map[string]bool{"in all levels": false, "in the last level": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openTest(t, dir, Options{MemTable: minMemTable, Sync: SyncNever()})
			txn := s.db.NewTransaction(false)
			if !reader {
				txn.Discard()
			}
			left := popped(t, s, 60_000, 10)
			if reader {
				mergedForAReader(t, s, txn)
			}
			if err := s.Compact(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if dead := deadEntries(t, s); dead > deadAllowed {
				t.Errorf("%d entries of the tables are not live", dead)
			}
			left.check(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			sizes, err := Sizes(dir)
			if err != nil {
				t.Fatal(err)
			}
			if most := left.bytes*13/10 + 8<<20; sizes.Total > most {
				t.Errorf("the folder takes %+v with %d live bytes, at most %d are allowed", sizes, left.bytes, most)
			}
			left.check(t, openTest(t, dir, Options{}))
		})
	}
}

func TestCompactIsRefusedWhereTheTablesHaveNoRoomToBeWrittenAnew(t *testing.T) {
	var free atomic.Int64
	free.Store(1 << 40)
	s := openTest(t, t.TempDir(), Options{MemTable: minMemTable, Sync: SyncNever(), tune: tuning{
		stat: func(string) (int64, int64, error) { return free.Load(), 1 << 40, nil },
	}})
	left := popped(t, s, 20_000, 2)
	if err := s.rotate(); err != nil {
		t.Fatal(err)
	}
	before := s.db.Tables()
	free.Store(left.bytes)
	if err := s.Compact(t.Context(), nil); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "free some room") {
		t.Errorf("compacting gives %v", err)
	}
	if len(before) > len(s.db.Tables()) {
		t.Error("tables were merged all the same")
	}
	free.Store(1 << 40)
	left.check(t, s)
}

func TestCompactEndsBetweenTwoStepsWhenItIsCancelled(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{MemTable: minMemTable, Sync: SyncNever()})
	left := popped(t, s, 20_000, 10)
	for _, step := range []string{"count", "write out"} {
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Compact(ctx, func(p CompactProgress) {
			if p.Step == step {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %q: %v", step, err)
		}
		left.check(t, s)
	}
}

func TestProgressOfCompactRisesToItsTotal(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{MemTable: minMemTable, Sync: SyncNever()})
	popped(t, s, 30_000, 10)
	var last CompactProgress
	err := s.Compact(t.Context(), func(p CompactProgress) {
		if p.Step == last.Step && p.Done < last.Done || p.Done > p.Total {
			t.Errorf("%+v came after %+v", p, last)
		}
		if p.Total > 0 {
			last = p
		}
	})
	if err != nil || last.Total == 0 || last.Done != last.Total {
		t.Errorf("error %v, ends with %+v", err, last)
	}
}

func TestSizesAreThoseOfTheFileSystem(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{MemTable: minMemTable, Sync: SyncNever()})
	popped(t, s, 20_000, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sizes, err := Sizes(dir)
	if err != nil {
		t.Fatal(err)
	}
	if sizes.Reserve == 0 || sizes.Reserve >= sizes.Total {
		t.Errorf("the reserve must be a part of the total: %+v", sizes)
	}
	out, err := exec.Command("du", "-s", "--block-size=1", dir).Output()
	if err != nil {
		t.Skipf("skipped: no du here: %v", err)
	}
	if total, _, _ := strings.Cut(string(out), "\t"); total != strconv.FormatInt(sizes.Total, 10) {
		t.Errorf("the total is %d, du says %s", sizes.Total, total)
	}
}

func TestSizesOfAFolderThatIsNoneAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{dir, dir + "/missing"} {
		if _, err := Sizes(name); !errors.Is(err, ErrNotFolder) {
			t.Errorf("measuring %s gives %v", name, err)
		}
	}
}
