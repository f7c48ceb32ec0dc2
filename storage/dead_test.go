package storage

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

// stacked is a store with packets of two sizes, and how many bytes its merges have written: in all,
// and in one step at most.
type stacked struct {
	*testing.T
	s      *Store
	merged atomic.Int64
	most   atomic.Int64
	b      content.Batch
}

func newStacked(t *testing.T, o Options) *stacked {
	k := &stacked{T: t}
	o.Sync = SyncNever()
	o.tune.step = func(bytes int64) {
		k.merged.Add(bytes)
		for most := k.most.Load(); bytes > most && !k.most.CompareAndSwap(most, bytes); most = k.most.Load() {
		}
	}
	k.s = openTest(t, t.TempDir(), o)
	return k
}

// apply puts packets of a size, or deletes them, and has all become tables.
func (k *stacked) apply(from, n uint64, size int, puts bool) {
	k.Helper()
	payload := make([]byte, size)
	for seq := from; seq < from+n; {
		for k.b.Reset(); seq < from+n && k.b.Len() < 1024 && k.b.Bytes() < 4<<20; seq++ {
			if id := (content.PacketID{Queue: 1, Priority: 1, Seq: seq}); puts {
				k.b.Put(id, &content.Packet{Payload: payload})
			} else {
				k.b.Delete(id, content.Removed{Large: content.IsLarge(size), Size: size})
			}
		}
		applied(k.T, k.s, &k.b)
	}
	n2, err := k.s.Snapshot()
	if err != nil {
		k.Fatal(err)
	}
	n2.Close()
}

func TestFewLargePacketsThatGoGiveTheirRoomBackBesideManySmall(t *testing.T) {
	if testing.Short() {
		t.Skip("200 MiB are written")
	}
	k := newStacked(t, Options{Window: minWindow})
	k.apply(1, 200_000, 158, true)
	small := k.s.tables.List().Bytes
	k.apply(1<<20, 200, 1<<20, true)
	k.apply(1<<20, 200, 1<<20, false)
	eventually(t, "the room of the large ones is not given back", func() bool {
		return k.s.tables.List().Bytes <= small+2*k.s.sizes.window
	})
}

func TestSmallPacketsThatComeAndGoDoNotRewriteLargeOnes(t *testing.T) {
	if testing.Short() {
		t.Skip("200 MiB are written")
	}
	k := newStacked(t, Options{Window: minWindow})
	k.apply(1, 200, 1<<20, true)
	eventually(t, "a merge is due", func() bool { due, _, _ := k.s.mergeDue(); return !due })
	before := k.merged.Load()
	for range max(5, inject.Runs()/40) {
		k.apply(1<<20, 20_000, 158, true)
		k.apply(1<<20, 20_000, 158, false)
	}
	eventually(t, "a merge is due", func() bool { due, _, _ := k.s.mergeDue(); return !due })
	if wrote := (k.merged.Load() - before) >> 20; wrote > 150 {
		t.Errorf("merges wrote %d MiB", wrote)
	}
}

// What a merge makes stands beside what it was made of until it comes in force.
func TestAMergeComesInForceByAnEighthOfTheTables(t *testing.T) {
	if testing.Short() {
		t.Skip("100 MiB are written")
	}
	k := newStacked(t, Options{Window: minWindow})
	for range 3 {
		k.apply(1, 30_000, 1000, true)
	}
	eventually(t, "a merge is due", func() bool { due, _, _ := k.s.mergeDue(); return !due })
	stored := int64(3 * 30_000 * 1100) // at most, at any moment
	if most := k.most.Load(); most == 0 || most > stored/8+2*k.s.sizes.table(stored) {
		t.Errorf("a step of a merge made %d bytes of at most %d", most, stored)
	}
}

// Two windows wait to become tables when the disk fills up: what is left is too little for one.
func TestSystemWindowsThatWaitOnAFullDiskBecomeTablesInTheRoomOfSpareFiles(t *testing.T) {
	t.Parallel()
	_, at := mountImage(t, 64, "")
	s := openTest(t, filepath.Join(at, "data"), Options{Sync: SyncNever()})
	p := newPusher(t, s)
	for s.guard.refresh(); s.Space().Free > s.guard.keep+2*s.sizes.window; s.guard.refresh() {
		p.push(64)
	}
	s.flushing.Lock()
	for bytes := int64(0); bytes < 5*s.sizes.window/2 && p.push(64); bytes, _, _ = s.layers.waiting() {
	}
	fillDisk(t, filepath.Join(at, "foreign"))
	s.flushing.Unlock()
	eventually(t, "windows wait", func() bool {
		_, _, frozen := s.layers.waiting()
		return frozen == 0
	})
	for len(p.live) > 0 && p.pop(64) {
	}
	eventually(t, "packets are left", func() bool { return len(p.live) == 0 || p.pop(64) && len(p.live) == 0 })
	eventually(t, "pushes are refused", func() bool { return p.push(1) })
}

// A queue fills the disk, somebody else leaves less than what a merge leaves free, and the queue is
// drained: now, before a start, or before a compact.
func TestSystemADrainedDiskGivesItsRoomBackWhateverIsLeftFree(t *testing.T) {
	first, stride := some(t, 2) // of each moment one
	n := stride - first
	for name, free := range map[string]int64{"3.9 MB are free": 3_900_000, "2 MB are free": 2_000_000} {
		for _, when := range []string{"at once", "after a start", "by a compact"} {
			if n++; n%stride != 0 {
				continue
			}
			t.Run(name+", "+when, func(t *testing.T) {
				t.Parallel()
				_, at := mountImage(t, 64, "")
				dir := filepath.Join(at, "data")
				p := newPusher(t, openTest(t, dir, Options{}))
				for p.push(64) {
				}
				foreign, err := os.Create(filepath.Join(at, "foreign"))
				if err != nil {
					t.Fatal(err)
				}
				defer foreign.Close()
				piece := make([]byte, 64<<10)
				for p.s.guard.refresh(); p.s.Space().Free > free; p.s.guard.refresh() {
					if _, err := foreign.Write(piece); err != nil {
						break
					}
				}
				for len(p.live) > 0 {
					if !p.pop(64) {
						t.Fatalf("a pop was refused with %d packets left: %+v", len(p.live), p.s.Space())
					}
				}
				switch when {
				case "after a start":
					p.reopen(dir)
				case "by a compact":
					if err := p.s.Close(); err != nil {
						t.Fatal(err)
					}
					p.s = openTest(t, dir, Options{})
					if err := p.s.Compact(t.Context(), time.Now().UnixMilli(), nil); err != nil {
						t.Fatal(err)
					}
				}
				eventually(t, "pushes are refused", func() bool { return p.push(1) })
			})
		}
	}
}

func TestSystemACloseWritesOutWhatAMergeHadTheRoomOf(t *testing.T) {
	t.Parallel()
	_, at := mountImage(t, 64, "")
	step, closing := make(chan struct{}), make(chan struct{})
	var once sync.Once
	o := Options{Sync: SyncNever()}
	o.tune.step = func(int64) {
		once.Do(func() {
			close(step)
			<-closing
		})
	}
	dir, taken := filepath.Join(at, "data"), filepath.Join(at, "taken")
	s := openTest(t, dir, o)
	go func() {
		<-s.ctx.Done() // as long as the merge goes on, its room is taken
		_ = os.Remove(taken)
		close(closing)
	}()
	p := newPusher(t, s)
	for len(p.live) < 20_000 {
		if !p.push(64) {
			t.Fatal("a push was refused")
		}
	}
	for len(p.live) > 0 && p.pop(64) {
	}
	<-step
	if !p.push(64) {
		t.Fatal("the last push was refused")
	}
	file, err := os.Create(taken)
	if err != nil {
		t.Fatal(err)
	}
	for ; err == nil; _, err = file.Write(make([]byte, 64<<10)) {
		s.guard.refresh()
		if err := s.journal.DropSpares(); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	p.reopen(dir)
}

func TestACloseReturnsWhyTheStoreStoppedMeanwhile(t *testing.T) {
	broken := errors.New("broken")
	step := make(chan struct{})
	var once sync.Once
	var s *Store
	o := Options{Window: minWindow, Sync: SyncNever()}
	o.tune.step = func(int64) {
		once.Do(func() {
			close(step)
			<-s.ctx.Done()
			s.fail(broken)
		})
	}
	dir := t.TempDir()
	s = openTest(t, dir, o)
	p := newPusher(t, s)
	for begun := false; !begun; {
		p.push(64)
		select {
		case <-step:
			begun = true
		default:
		}
	}
	p.push(1)
	if err := s.Close(); !errors.Is(err, broken) {
		t.Errorf("close: %v", err)
	}
	p.s = openTest(t, dir, Options{})
	p.check(p.s) // by the journal
}

func TestAStoreThatFollowsGivesRoomBackWithoutABatchMore(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		l := &sharedLog{}
		owner := l.follower(t, t.TempDir())
		if err := owner.Own(l.Append, now); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		s := l.follower(t, dir)
		k := stacked{T: t, s: owner}
		k.apply(1, 10_000, 158, true)
		k.apply(1<<20, 50, 1<<20, true)
		if err := l.follow(s); err != nil {
			t.Fatal(err)
		}
		settled(t, s) // so that the tables have them
		full := s.tables.List().Bytes
		k.apply(1<<20, 50, 1<<20, false)
		if err := l.follow(s); err != nil {
			t.Fatal(err)
		}
		if restarts { // it knows of nothing dead then
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = l.follower(t, dir)
			s.MakeRoom()
		}
		eventually(t, "the room is not given back", func() bool { return s.tables.List().Bytes < full/5 })
		if restarts {
			eventually(t, "it merges all again and again", func() bool { return !s.unsure.Load() })
		}
	}
}

func TestAMergeThatMayGiveNothingTakesNoRoomOfTheJournal(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{true, false} {
		l := &sharedLog{}
		owner := l.follower(t, t.TempDir())
		if err := owner.Own(l.Append, now); err != nil {
			t.Fatal(err)
		}
		k := stacked{T: t, s: owner}
		k.apply(1, 1000, 158, true)
		o := Options{Window: minWindow, Release: l.Release}
		o.tune.stat = func(string) (int64, int64, error) { return freeWindows*minWindow - 1, 1 << 30, nil }
		s := openTest(t, t.TempDir(), o)
		if err := l.follow(s); err != nil {
			t.Fatal(err)
		}
		settled(t, s)
		if err := s.journal.SetSpares(3); err != nil {
			t.Fatal(err)
		}
		_, spares := s.journal.Size() // the store may just make one more
		if s.tight.Store(asked); s.mayPay() != asked {
			t.Errorf("asked for room: %v; it may pay: %v", asked, s.mayPay())
		}
		if _, _, err := s.mergeOnce(s.ctx, true); !errors.Is(err, ErrFull) {
			t.Fatalf("it merges without room: %v", err)
		}
		if _, has := s.journal.Size(); (has >= spares) != asked || s.mayPay() {
			t.Errorf("asked for room: %v; the journal has %d bytes to spare, had %d; it may pay: %v", asked, has, spares, s.mayPay())
		}
	}
}
