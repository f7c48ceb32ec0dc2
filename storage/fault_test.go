package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// one returns a batch of one packet.
func one(seq uint64, p Packet) *Batch {
	var b Batch
	b.Put(PacketID{1, 1, seq}, &p)
	return &b
}

func TestFailedSyncStopsTheStoreAndIsNotTriedAgain(t *testing.T) {
	var calls, failAt atomic.Int64
	broken := errors.New("broken device")
	o := Options{MemTable: minMemTable, tune: tuning{sync: func(f *os.File) error {
		if strings.HasSuffix(f.Name(), logSuffix) && calls.Add(1) == failAt.Load() {
			return broken
		}
		return fdatasync(f)
	}}}
	dir := t.TempDir()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(one(1, Packet{})); err != nil {
		t.Fatal(err)
	}
	failAt.Store(calls.Load() + 1)
	if err := s.Apply(one(2, Packet{})); !errors.Is(err, ErrUnknown) || !errors.Is(err, broken) {
		t.Fatalf("a batch that was not synced gives %v", err)
	}
	after := calls.Load()
	if err := s.Apply(one(3, Packet{})); !errors.Is(err, ErrUnknown) || !errors.Is(err, broken) {
		t.Errorf("the batch after it gives %v", err)
	}
	if calls.Load() != after {
		t.Error("the store synced again after a failed sync")
	}
	if got := s.Control().Batch; got != 1 {
		t.Errorf("the control record tells batch %d, want 1", got)
	}
	if err := s.Close(); !errors.Is(err, broken) {
		t.Errorf("Close returns %v", err)
	}
	s = openTest(t, dir, Options{MemTable: minMemTable})
	ids, tally := scanned(t, s)
	if err := s.Verify(tally); err != nil || len(ids) < 1 || len(ids) > 2 {
		t.Errorf("after reopening: packets %v, %v", ids, err)
	}
}

func TestFailedSyncOfAnIntervalStopsTheStore(t *testing.T) {
	var broken atomic.Bool
	o := Options{MemTable: minMemTable, Sync: SyncInterval(time.Millisecond), tune: tuning{sync: func(f *os.File) error {
		if broken.Load() {
			return errors.New("broken device")
		}
		return fdatasync(f)
	}}}
	s, err := Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	broken.Store(true)
	for seq := uint64(1); ; seq++ {
		if err := s.Apply(one(seq, Packet{})); err != nil {
			if !errors.Is(err, ErrUnknown) {
				t.Error(err)
			}
			return
		}
	}
}

// synced counts the syncs of logs.
func synced(calls *atomic.Int64) func(*os.File) error {
	return func(f *os.File) error {
		if strings.HasSuffix(f.Name(), logSuffix) {
			calls.Add(1)
		}
		return fdatasync(f)
	}
}

func TestEveryBatchIsSyncedOnceAcrossRotations(t *testing.T) {
	var calls atomic.Int64
	s := openTest(t, t.TempDir(), Options{MemTable: minMemTable, tune: tuning{sync: synced(&calls)}})
	first := s.wal.next
	const batches = 200
	payload := make([]byte, 900)
	for i := range uint64(batches) {
		var b Batch
		for j := range uint64(30) {
			b.Put(PacketID{1, 1, 30*i + j}, &Packet{Payload: payload})
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		if got := calls.Load(); got != int64(i+1) {
			t.Fatalf("%d syncs after %d batches", got, i+1)
		}
		newest, err := logNames(s.folder.name(dbName))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.wal.files[len(s.wal.files)-1].file.Name(); filepath.Base(got) != filepath.Base(newest[len(newest)-1]) {
			t.Fatalf("synced %s, the newest log is %s", got, newest[len(newest)-1])
		}
	}
	if s.wal.next-first < 3 {
		t.Fatalf("only %d rotations", s.wal.next-first)
	}
}

func TestIntervalSyncsEveryLogBeforeItCountsAsDurable(t *testing.T) {
	var calls atomic.Int64
	s := openTest(t, t.TempDir(), Options{MemTable: minMemTable, Sync: SyncInterval(time.Minute), tune: tuning{sync: synced(&calls)}})
	first := s.wal.next
	payload := make([]byte, 900)
	for i := range uint64(2500) {
		if err := s.Apply(one(i, Packet{Payload: payload})); err != nil {
			t.Fatal(err)
		}
	}
	rotations := s.wal.next - first
	if rotations < 2 {
		t.Fatalf("only %d rotations", rotations)
	}
	durable := uint64(0)
	s.syncInterval(&durable)
	if calls.Load() != int64(rotations)+1 || durable != 2500 || s.anchor.last.batch != 2500 {
		t.Errorf("%d syncs for %d logs, durable %d, anchor %d", calls.Load(), rotations+1, durable, s.anchor.last.batch)
	}
}

func TestLogsThatNobodySyncsAreNotKeptOpen(t *testing.T) {
	for name, o := range map[string]Options{
		"never":       {Sync: SyncNever()},
		"by Badger":   {tune: tuning{badgerSync: true}},
		"every batch": {},
	} {
		t.Run(name, func(t *testing.T) {
			o.MemTable = minMemTable
			s := openTest(t, t.TempDir(), o)
			first := s.wal.next
			payload := make([]byte, 900)
			for i := range uint64(80) {
				var b Batch
				for j := range uint64(30) {
					b.Put(PacketID{1, 1, 30*i + j}, &Packet{Payload: payload})
				}
				older := s.wal.files[0].file
				if err := s.Apply(&b); err != nil {
					t.Fatal(err)
				}
				if _, err := older.Stat(); len(s.wal.files) != 1 || s.wal.files[0].file != older && !errors.Is(err, os.ErrClosed) {
					t.Fatalf("%d logs are open, the one before: %v", len(s.wal.files), err)
				}
			}
			if s.wal.next-first < 2 {
				t.Fatalf("only %d rotations", s.wal.next-first)
			}
		})
	}
}

func TestNativeExpiryIsSetWithSlack(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{MemTable: minMemTable})
	const ms = 4_000_000_000_001 // far from now
	var b Batch
	b.Put(PacketID{1, 1, 1}, &Packet{Payload: []byte("x"), Expiry: ms})
	b.Put(PacketID{1, 1, 2}, &Packet{Payload: make([]byte, 3000), Expiry: ms})
	b.Put(PacketID{1, 1, 3}, &Packet{Payload: []byte("x")})
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{
		string(appendPacketKey(nil, PacketID{1, 1, 1})):  4_000_000_001 + ttlSlackSeconds,
		string(appendPacketKey(nil, PacketID{1, 1, 2})):  4_000_000_001 + ttlSlackSeconds,
		string(appendPayloadKey(nil, PacketID{1, 1, 2})): 4_000_000_001 + ttlSlackSeconds,
		string(appendPacketKey(nil, PacketID{1, 1, 3})):  0,
		controlKey: 0,
	}
	err := s.db.View(func(txn *badger.Txn) error {
		for key, expires := range want {
			item, err := txn.Get([]byte(key))
			if err != nil {
				return fmt.Errorf("%q: %w", key, err)
			}
			if item.ExpiresAt() != expires {
				t.Errorf("%q expires at %d, want %d", key, item.ExpiresAt(), expires)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Control().Live != 1 {
		t.Errorf("%d live packets without expiry, want 1", s.Control().Live)
	}
}

func TestExpiredPacketIsHiddenByBadgerAfterTheSlackAndMissedByNobody(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{MemTable: minMemTable})
	var b Batch
	long := time.Now().Add(-2 * ttlSlackSeconds * time.Second).UnixMilli()
	just := time.Now().Add(-time.Second).UnixMilli()
	b.Put(PacketID{1, 1, 1}, &Packet{Expiry: long})
	b.Put(PacketID{1, 1, 2}, &Packet{Expiry: just})
	b.Put(PacketID{1, 1, 3}, &Packet{})
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	ids, tally := scanned(t, s)
	if len(ids) != 2 || ids[0].Seq != 2 {
		t.Errorf("a scan shows %v", ids)
	}
	if err := s.Verify(tally); err != nil {
		t.Error(err)
	}
}

func TestNothingReachesTheValueLog(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{MemTable: minMemTable})
	l := s.Limits()
	p := Packet{Payload: make([]byte, l.MaxRecord-20)}
	if err := s.Apply(one(1, p)); err != nil {
		t.Fatalf("a packet of the longest record, %d bytes: %v", l.MaxRecord, err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, dbName, "*.vlog"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	for _, log := range logs {
		bytes, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range bytes[logHeader:] {
			if c != 0 {
				t.Fatalf("%s is written to", log)
			}
		}
	}
}

func TestBatchOverTheLimitsIsRefusedAndNothingIsWritten(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{MemTable: minMemTable})
	l := s.Limits()
	var b Batch
	fill := func(n int) {
		b.Reset()
		for i := range n {
			b.Put(PacketID{1, 1, uint64(i)}, &Packet{})
		}
	}
	fill(l.MaxOps + 1)
	if err := s.Apply(&b); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a batch of %d operations gives %v", b.Len(), err)
	}
	b.Reset()
	for i := 0; b.Bytes() <= l.MaxBytes; i++ {
		b.Put(PacketID{1, 1, uint64(i)}, &Packet{Payload: make([]byte, 500)})
	}
	if err := s.Apply(&b); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a batch of %d bytes gives %v", b.Bytes(), err)
	}
	if ids, _ := scanned(t, s); len(ids) != 0 {
		t.Errorf("%d packets are there", len(ids))
	}
	fill(l.MaxOps)
	if err := s.Apply(&b); err != nil {
		t.Errorf("a batch of exactly %d operations: %v", b.Len(), err)
	}
	b.Reset()
	for i := 0; ; i++ {
		op := b.Put(PacketID{2, 1, uint64(i)}, &Packet{Payload: make([]byte, 500)})
		if b.Bytes() > l.MaxBytes {
			b.Cancel(op)
			break
		}
	}
	if err := s.Apply(&b); err != nil {
		t.Errorf("a batch of %d bytes of %d: %v", b.Bytes(), l.MaxBytes, err)
	}
}

func TestFullDiskRefusesBatchesUntilThereIsRoom(t *testing.T) {
	var free atomic.Int64
	free.Store(1 << 40)
	o := Options{MemTable: minMemTable, tune: tuning{stat: func(string) (int64, int64, error) { return free.Load(), 1 << 30, nil }}}
	s := openTest(t, t.TempDir(), o)
	if err := s.Apply(one(1, Packet{})); err != nil {
		t.Fatal(err)
	}
	free.Store(0)
	s.guard.refresh(0)
	if _, err := os.Stat(s.guard.reserve); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the reserve is still there: %v", err)
	}
	if err := s.Apply(one(2, Packet{})); !errors.Is(err, ErrFull) || s.Space().Level != Stop {
		t.Errorf("a full disk gives %v, level %v", err, s.Space().Level)
	}
	free.Store(s.guard.sizing.background(0) + s.guard.sizing.draining()/2)
	if err := s.Apply(one(3, Packet{})); err != nil || s.Space().Level != NoPush {
		t.Errorf("a disk nearly full gives %v, level %v", err, s.Space().Level)
	}
	free.Store(1 << 40)
	if err := s.Apply(one(4, Packet{})); err != nil || s.Space().Level != Normal {
		t.Errorf("a disk with room gives %v, level %v", err, s.Space().Level)
	}
	s.guard.refresh(0)
	if _, err := os.Stat(s.guard.reserve); err != nil {
		t.Errorf("the reserve was not made again: %v", err)
	}
	if ids, _ := scanned(t, s); len(ids) != 3 {
		t.Errorf("%v are there, want 1, 3 and 4", ids)
	}
}

var errGone = errors.New("the device is gone")

// syncless opens a store that cannot sync while fails is set.
func syncless(t *testing.T, dir string, fails *atomic.Bool) *Store {
	t.Helper()
	s, err := Open(dir, Options{MemTable: minMemTable, tune: tuning{sync: func(f *os.File) error {
		if fails.Load() {
			return errGone
		}
		return fdatasync(f)
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // it has stopped, and says so
	return s
}

func TestNothingIsWrittenBehindABatchWhoseOutcomeIsNotKnown(t *testing.T) {
	for name, work := range map[string]func(s *Store) error{
		"rotate": (*Store).rotate,
		"sink":   func(s *Store) error { _, err := s.sink(); return err },
		"span":   (*Store).span,
	} {
		t.Run(name, func(t *testing.T) {
			var fails atomic.Bool
			dir, left := t.TempDir(), t.TempDir()
			s := syncless(t, dir, &fails)
			if err := s.Apply(one(1, Packet{})); err != nil {
				t.Fatal(err)
			}
			fails.Store(true)
			if err := s.Apply(one(2, Packet{})); !errors.Is(err, ErrUnknown) {
				t.Fatal(err)
			}
			fails.Store(false)
			if err := work(s); !errors.Is(err, errGone) {
				t.Errorf("it gives %v", err)
			}
			copyFolder(t, dir, left)
			s = openTest(t, left, Options{})
			_, tally := scanned(t, s)
			if err := s.Verify(tally); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStoreStopsWhenWhatIsNoBatchCannotBeSynced(t *testing.T) {
	var fails atomic.Bool
	s := syncless(t, t.TempDir(), &fails)
	fails.Store(true)
	if err := s.span(); !errors.Is(err, errGone) {
		t.Errorf("it gives %v", err)
	}
	fails.Store(false)
	if err := s.Apply(one(1, Packet{})); !errors.Is(err, ErrUnknown) {
		t.Errorf("a batch behind it gives %v", err)
	}
}
