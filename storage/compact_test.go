package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// leftover is what popped leaves in a store.
type leftover struct {
	packets map[content.PacketID]bool
	bytes   int64 // of keys and records
	control content.Control
}

// popped fills a store with n packets of 128 bytes and pops all but every keep-th, in no order.
func popped(t *testing.T, s *Store, n, keep int) leftover {
	t.Helper()
	const run = 500
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	left := leftover{packets: make(map[content.PacketID]bool)}
	var b content.Batch
	var gone []content.PacketID
	p := benchPacket()
	for at := range n {
		id := content.PacketID{Queue: 1, Priority: 1 + uint32(at%200), Seq: 1<<63 + uint64(at)}
		binary.BigEndian.PutUint64(p.Key, id.Seq)
		op := b.Put(id, &p)
		if at%keep == 0 {
			left.packets[id] = true
			left.bytes += content.PacketKeyLen + int64(len(b.Record(op)))
		} else {
			gone = append(gone, id)
		}
		if b.Len() == run || at == n-1 {
			applied(t, s, &b)
		}
	}
	settled(t, s)
	rng.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
	for i, id := range gone {
		b.Delete(id, content.Removed{})
		if b.Len() == run || i == len(gone)-1 {
			applied(t, s, &b)
		}
	}
	left.control = s.Control()
	return left
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
	if got := s.Control(); got != l.control {
		t.Errorf("the control record is %+v, want %+v", got, l.control)
	}
}

func TestCompactLeavesNothingThatWasDeleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir, Options{Window: minWindow, Sync: SyncNever()})
	left := popped(t, s, 60_000, 10)
	if err := s.Compact(t.Context(), time.Now().UnixMilli(), nil); err != nil {
		t.Fatal(err)
	}
	if n := s.tables.List().Entries; n != uint64(len(left.packets)+1) { // and the control record
		t.Errorf("the tables have %d entries of %d packets", n, len(left.packets))
	}
	left.check(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sizes, err := Sizes(dir)
	if err != nil {
		t.Fatal(err)
	}
	if most := left.bytes*13/10 + 1<<20; sizes.Total > most || sizes.Journal != 0 {
		t.Errorf("the folder takes %+v with %d live bytes, at most %d are allowed", sizes, left.bytes, most)
	}
	left.check(t, smallStore(t, dir))
}

func TestCompactIsRefusedWhereTheTablesHaveNoRoomToBeWrittenAnew(t *testing.T) {
	var free atomic.Int64
	free.Store(1 << 40)
	s := openTest(t, t.TempDir(), Options{Window: minWindow, Sync: SyncNever(), tune: tuning{
		stat: func(string) (int64, int64, error) { return free.Load(), 1 << 40, nil },
	}})
	left := popped(t, s, 20_000, 2)
	settled(t, s)
	before := s.tables.List()
	free.Store(left.bytes)
	s.guard.refresh()
	if err := s.Compact(t.Context(), time.Now().UnixMilli(), nil); !errors.Is(err, ErrFull) {
		t.Errorf("compacting gives %v", err)
	}
	if s.tables.List() != before {
		t.Error("tables were merged all the same")
	}
	free.Store(1 << 40)
	left.check(t, s)
}

func TestCompactEndsBetweenTwoStepsWhenItIsCancelled(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Window: minWindow, Sync: SyncNever()})
	left := popped(t, s, 20_000, 10)
	for _, step := range []string{"write out", "merge", "check"} {
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Compact(ctx, time.Now().UnixMilli(), func(now string, _, _ int64) {
			if now == step {
				cancel()
			}
		})
		if cancel(); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %q: %v", step, err)
		}
		left.check(t, s)
	}
}

func TestProgressOfCompactRisesToItsTotal(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Window: minWindow, Sync: SyncNever()})
	popped(t, s, 30_000, 10)
	type progress struct {
		step        string
		done, total int64
	}
	var last progress
	err := s.Compact(t.Context(), time.Now().UnixMilli(), func(step string, done, total int64) {
		p := progress{step, done, total}
		if step == last.step && done < last.done || done > total {
			t.Errorf("%+v came after %+v", p, last)
		}
		if total > 0 {
			last = p
		}
	})
	if err != nil || last.total == 0 || last.done != last.total {
		t.Errorf("error %v, ends with %+v", err, last)
	}
}

// The deletes are in the journal alone when the store is killed.
func TestRoomOfWhatAKilledStoreHadDeletedComesBack(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Window: 1 << 20, Sync: SyncNever()})
	left := popped(t, s, 60_000, 100)
	s = openTest(t, killed(t, s), Options{Window: 1 << 20})
	before := s.tables.List().Bytes
	left.check(t, s)
	eventually(t, "the tables have what was deleted", func() bool { return s.tables.List().Bytes < before/10 })
}

// A store that has many small windows merges them by itself, also while Compact does.
func TestCompactAndMergesInTheBackgroundDoNotMeet(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir(), Options{Window: minWindow, Sync: SyncNever()})
	var b content.Batch
	seq := uint64(0)
	for range 5 {
		for range mergeGroups + 4 {
			for range 200 {
				b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: seq}, &content.Packet{Payload: make([]byte, 500)})
				if seq >= 1000 && seq%3 > 0 {
					b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: seq - 1000}, content.Removed{})
				}
				seq++
			}
			applied(t, s, &b)
			settled(t, s)
		}
		if err := s.Compact(t.Context(), time.Now().UnixMilli(), nil); err != nil {
			t.Fatal(err)
		}
		ids, tally := scanned(t, s)
		if err := s.Verify(tally); err != nil || uint64(len(ids)) != s.Control().Live {
			t.Fatalf("%d packets, %v", len(ids), err)
		}
	}
}

func TestCompactHoldsWhatIsLeftAgainstTheControlRecord(t *testing.T) {
	s, ids, _ := inOneTable(t, 40, 100)
	behind(t, s, func(e *entries) { e.delete(content.AppendPacketKey(nil, ids[3])) })
	var mismatch *content.MismatchError
	if err := s.Compact(t.Context(), time.Now().UnixMilli(), nil); !errors.As(err, &mismatch) || mismatch.CameBack() {
		t.Errorf("compacting gives %v", err)
	}
}

func TestTablesThatAreDamagedAreNotMerged(t *testing.T) {
	const size = 5000
	s, ids, table := inOneTable(t, 40, size)
	before := settled(t, s).tables.List()
	flipPayload(t, table, 7, size)
	if err := s.Compact(t.Context(), time.Now().UnixMilli(), nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("compacting gives %v", err)
	}
	if s.tables.List() != before {
		t.Error("other tables are in force")
	}
	flipPayload(t, table, 7, size)
	if missing := unread(t, s, ids, size); len(missing) > 0 {
		t.Errorf("packets %v are missing", missing)
	}
}

func TestSystemSizesAreThoseOfTheFileSystem(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{Window: minWindow, Sync: SyncNever()})
	popped(t, s, 20_000, 2)
	sizes, err := Sizes(killed(t, s))
	if err != nil || sizes.Journal == 0 || sizes.Journal >= sizes.Total {
		t.Errorf("the journal must be a part of the total: %+v, %v", sizes, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if sizes, err = Sizes(dir); err != nil || sizes.Journal > 4096 { // the folder itself
		t.Errorf("a stopped folder has %+v, %v", sizes, err)
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

func TestSystemSizesAreOfWhatCanBeReadAndSayWhatCannot(t *testing.T) {
	if dir, _, ok := strings.Cut(os.Getenv(refusedFolder), "|"); ok {
		sizes, err := Sizes(dir)
		fmt.Printf("<%v %v>", sizes.Total > 0 && !sizes.Newest.IsZero(), errors.Is(err, fs.ErrPermission))
		return
	}
	if os.Getuid() != 0 {
		t.Skip("skipped: only root can run a test as another user")
	}
	dir := shared(t)
	if err := openTest(t, dir, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	chownAll(t, dir)
	if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out := asNobody(t, dir, ""); out != "<true true>" {
		t.Errorf("it gives %s", out)
	}
}
