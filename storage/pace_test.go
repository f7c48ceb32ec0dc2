package storage

import (
	"errors"
	"github.com/holdfast-queue/holdfast/storage/content"
	"sync/atomic"
	"testing"
	"time"
)

func TestBatchesWaitWhileTooMuchWaitsToBecomeTables(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Window: minWindow, Sync: SyncNever()})
	applied(t, s, one(1, content.Packet{}))
	s.flushing.Lock() // no window becomes tables
	seq, pushed := uint64(2), make(chan struct{})
	push := func() {
		if err := s.Apply(one(seq, content.Packet{Payload: make([]byte, 100_000)})); err != nil {
			t.Error(err)
		}
		seq++
	}
	for s.behind() <= 1 && !t.Failed() {
		if s.behind() > dataPart && s.Space().Wait == 0 {
			t.Errorf("with %.2f behind data does not wait", s.behind())
		}
		push()
	}
	go func() {
		defer close(pushed)
		push()
	}()
	select {
	case <-pushed:
		t.Error("a batch does not wait")
	case <-time.After(100 * time.Millisecond):
	}
	s.flushing.Unlock()
	<-pushed
	eventually(t, "much still waits", func() bool { return s.behind() < 0.5 && s.Space().Wait == 0 })
}

func TestARestOfTheMergerEndsWhereLevel0IsLong(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Window: minWindow, Sync: SyncNever()})
	s.rested = time.Now().Add(time.Hour)
	p := newPusher(t, s)
	most := 0
	for s.tables.List().Windows == 0 || most <= mergeTables {
		p.push(64)
		zero := s.tables.List().Zero
		most = max(most, zero)
	}
	eventually(t, "nothing is merged", func() bool { return s.tables.List().Zero < most })
}

func TestALongLevel0HoldsDataAlone(t *testing.T) {
	o := Options{Window: minWindow, Sync: SyncNever()}
	goOn := make(chan struct{})
	o.tune.step = func(int64) { <-goOn }
	s := openTest(t, t.TempDir(), o)
	defer close(goOn)
	p := newPusher(t, s)
	for zero := 0; float64(zero) <= dataPart*waitTables; zero = s.tables.List().Zero {
		p.push(64)
	}
	applied(t, s, one(1, content.Packet{})) // it looks at the tables
	if s.Space().Wait == 0 {
		t.Error("data does not wait")
	}
	popped := make(chan struct{})
	go func() {
		defer close(popped)
		for zero := 0; zero <= waitTables; zero = s.tables.List().Zero { // by who does not ask
			p.push(64)
		}
		p.pop(64)
	}()
	select {
	case <-popped:
	case <-time.After(time.Minute):
		t.Error("a pop waits for a merge")
	}
}

func TestPushesGoOnBesideADeepMerge(t *testing.T) {
	o := Options{Window: minWindow, Sync: SyncNever()}
	goOn, deep := make(chan struct{}), make(chan struct{})
	var steps atomic.Int32
	o.tune.step = func(int64) {
		if steps.Add(1) == 1 {
			close(deep)
			<-goOn
		}
	}
	s := openTest(t, t.TempDir(), o)
	defer close(goOn)
	p := newPusher(t, s)
	for begun := false; !begun; {
		p.push(64)
		select {
		case <-deep:
			begun = true
		default:
		}
	}
	const many = 24 // windows, more than level 0 has room for
	before := s.tables.List().Window
	eventually(t, "pushes wait for a merge that is under way", func() bool {
		for s.behind() <= dataPart && s.tables.List().Window < before+many {
			p.push(64)
		}
		return s.tables.List().Window >= before+many
	})
	if beside := s.tables.List().Besides; beside == 0 {
		t.Error("nothing was merged beside it")
	}
}

// A step of a merge stands still on a full disk. What brings no data goes on as long as it leaves
// the merge its room.
func TestAMergeOfAFullDiskHoldsDataAlone(t *testing.T) {
	var free atomic.Int64
	free.Store(1 << 30)
	goOn, steps := make(chan struct{}), atomic.Int64{}
	o := Options{Window: minWindow, Sync: SyncNever()}
	o.tune.stat = func(string) (int64, int64, error) { return free.Load(), 1 << 30, nil }
	o.tune.step = func(int64) {
		steps.Add(1)
		<-goOn
	}
	s := openTest(t, t.TempDir(), o)
	p := newPusher(t, s)
	for s.tables.List().Windows < 4 {
		p.push(64)
	}
	for half := len(p.live) / 2; len(p.live) > half; {
		p.pop(64)
	}
	n, err := s.Snapshot() // all is in tables
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
	dead := s.tables.List().Bytes
	s.dead.Store(dead)
	free.Store(keepWindows*minWindow - 1)
	s.guard.refresh()
	s.wake(s.merge)
	eventually(t, "no merge begins", func() bool { return steps.Load() > 0 })
	popped := make(chan struct{})
	defer func() {
		close(goOn)
		<-popped
	}()
	go func() {
		defer close(popped)
		p.pop(1) // it looks at the disk
		p.pop(1)
	}()
	select {
	case <-popped:
	case <-time.After(10 * time.Second):
		t.Error("a pop waits for a merge")
	}
	if s.Space().Wait == 0 {
		t.Error("data does not wait")
	}
	free.Store(freeWindows*minWindow + 1)
	s.guard.refresh()
	if s.behind() <= 1 {
		t.Error("a pop takes the room of a merge")
	}
	goOn <- struct{}{}
	eventually(t, "a step lowers nothing before the merge is over", func() bool { return steps.Load() == 2 && s.dead.Load() < dead })
}

func TestNobodyWaitsForTablesThatCannotBeMade(t *testing.T) {
	s := smallStore(t, t.TempDir())
	p := newPusher(t, s)
	applied(t, s, one(1, content.Packet{}))
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.noted(flushing, errors.New("no"))
	for used := int64(0); used < keepWindows*minWindow; used, _ = s.journal.Size() {
		p.batch.Put(content.PacketID{Queue: 1, Priority: 1, Seq: p.next}, &content.Packet{Payload: make([]byte, 1000)})
		p.next++
		if p.batch.Len() == 64 {
			applied(t, s, &p.batch)
		}
	}
	if s.guard.refresh(); s.Space().Level != NoPush || s.behind() > 0 {
		t.Errorf("the level is %v", s.Space().Level)
	}
}

func TestBatchesAreAsSlowAsTheTablesThatTheyBecome(t *testing.T) {
	var p pace
	const mib, window = 1 << 20, 2 << 20
	p.measure(window, 8*time.Millisecond, window) // 4 ms a MiB
	p.measure(1, time.Second, window)             // too little to tell
	begun := time.Now()
	p.slow(begun, mib)
	if gap := p.next.Sub(begun); gap != 4*time.Millisecond-oldestDebt {
		t.Errorf("after 1 MiB the next one begins after %v", gap)
	}
	p.slow(begun.Add(time.Millisecond), mib) // which was told to begin later
	if gap := p.next.Sub(begun); gap != 8*time.Millisecond-oldestDebt {
		t.Errorf("after 2 MiB the next one begins after %v", gap)
	}
	p.slow(begun.Add(time.Second), -mib)
	if gap := p.next.Sub(begun); gap != time.Second-oldestDebt {
		t.Errorf("after what left nothing the next one begins after %v", gap)
	}
	for range 3 { // which did not wait
		p.slow(begun.Add(time.Second), 1000*mib)
		if gap := p.next.Sub(begun.Add(time.Second)); gap != longestGap-oldestDebt {
			t.Errorf("after 1000 MiB the next one begins after %v", gap)
		}
	}
}

func TestASyncOfTheIntervalHoldsNoBatch(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Window: minWindow, Sync: SyncInterval(time.Hour)})
	applied(t, s, one(1, content.Packet{}))
	s.commitMu.Lock() // a batch is under way
	defer s.commitMu.Unlock()
	synced := make(chan error)
	go func() { synced <- s.sync() }()
	select {
	case err := <-synced:
		if err != nil || s.anchor.last.batch != 1 {
			t.Errorf("the anchor tells of batch %d: %v", s.anchor.last.batch, err)
		}
	case <-time.After(time.Minute):
		t.Error("a sync waits for the batch")
	}
}

func TestTheJournalKeepsItsFilesAgainOnceADiskHasRoom(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Window: minWindow, Sync: SyncNever()})
	applied(t, s, one(1, content.Packet{}))
	if err := s.journal.DropSpares(); err != nil { // the disk was full
		t.Fatal(err)
	}
	p := newPusher(t, s)
	eventually(t, "files are removed that could be used again", func() bool {
		p.push(64)
		_, spare := s.journal.Size()
		return spare >= int64(s.sizes.spares)*s.sizes.segment
	})
}

func TestAWindowIsFourTables(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Window: 4 * minWindow, Sync: SyncNever()})
	p := newPusher(t, s)
	for s.tables.List().Windows == 0 {
		p.push(64)
	}
	if zero := s.tables.List().Zero; zero > 4 {
		t.Errorf("a window is %d tables", zero)
	}
}

func TestAMergeBesideAnotherBeginsWithManyTablesOrWhereItEndsAWait(t *testing.T) {
	for _, c := range []struct {
		zero, takes int
		due         bool
		why         string
	}{
		{20, 16, false, "few tables, and nobody waits"},
		{20, 17, true, "many tables"},
		{86, 1, false, "nobody waits yet"},
		{87, 1, true, "data waits, and does not when one table is gone"},
		{90, 3, false, "data waits for the deep merge, however often level 1 is written anew"},
		{90, 4, true, "data waits, and does not when four are gone"},
		{120, 17, true, "many tables, which would be more later"},
	} {
		if due := besideDue(c.zero, c.takes); due != c.due {
			t.Errorf("level 0 has %d tables, a merge beside takes %d: due is %v: %s", c.zero, c.takes, due, c.why)
		}
	}
}
