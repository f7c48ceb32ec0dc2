package storage

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// sharedLog is a log in memory, and the term of who appends to it.
type sharedLog struct {
	contents [][]byte      // of batch 1 and on
	released atomic.Uint64 // the flushers of both machines tell it
	refuses  error
	early    func(upto uint64) bool // says that a release comes too early; nil: none does
	isEarly  atomic.Bool
}

func (l *sharedLog) Append(batch uint64, pieces [][]byte) error {
	if l.refuses != nil {
		return l.refuses
	}
	if batch != uint64(len(l.contents)+1) {
		return errors.New("a batch is not the next one")
	}
	l.contents = append(l.contents, bytes.Join(pieces, nil))
	return nil
}

func (l *sharedLog) Release(upto uint64) {
	l.released.Store(upto)
	if l.early != nil && l.early(upto) {
		l.isEarly.Store(true)
	}
}

// follow has a store take what it has not.
func (l *sharedLog) follow(s *Store) error {
	for batch := s.Control().Batch + 1; batch <= uint64(len(l.contents)); batch++ {
		if err := s.Take(batch, l.contents[batch-1]); err != nil {
			return err
		}
	}
	return nil
}

func now() int64 { return time.Now().UnixMilli() }

// follower opens a store that follows.
func (l *sharedLog) follower(t testing.TB, dir string) *Store {
	return openTest(t, dir, Options{Window: minWindow, Release: l.Release})
}

func TestABatchThatIsNotDecidedIsNotInTheStoreAndEndsIt(t *testing.T) {
	l := &sharedLog{}
	s, err := Open(t.TempDir(), Options{Release: l.Release})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Own(l.Append, now); err != nil {
		t.Fatal(err)
	}
	applied(t, s, one(1, content.Packet{}))
	l.refuses = errors.New("another machine owns")
	if err := s.Apply(one(2, content.Packet{})); !errors.Is(err, ErrUnknown) || !errors.Is(err, l.refuses) {
		t.Errorf("a batch that is refused gives %v", err)
	}
	l.refuses = nil
	if err := s.Apply(one(3, content.Packet{})); !errors.Is(err, ErrUnknown) {
		t.Errorf("the one behind it gives %v", err)
	}
	if err := s.Close(); err == nil || s.Control().Batch != 1 || len(l.contents) != 1 {
		t.Errorf("closing gives %v; %d batches are decided, and the store has %d", err, len(l.contents), s.Control().Batch)
	}
}

func TestAStoreThatFollowsTakesNoBatchOfItsOwn(t *testing.T) {
	s, err := Open(t.TempDir(), Options{Release: new(sharedLog).Release})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Apply(one(1, content.Packet{})); !errors.Is(err, errFollows) {
		t.Errorf("got %v", err)
	}
}

// decided returns the log of an owner with three packets.
func decided(t *testing.T) *sharedLog { return decides(t, 3) }

func decides(t *testing.T, packets uint64) *sharedLog {
	l := &sharedLog{}
	s := l.follower(t, t.TempDir())
	if err := s.Own(l.Append, now); err != nil {
		t.Fatal(err)
	}
	for seq := range packets {
		applied(t, s, one(seq+1, content.Packet{}))
	}
	return l
}

func TestAStoreThatFollowsRefusesWhatDoesNotContinueIt(t *testing.T) {
	l := decided(t)
	newer := slices.Clone(l.contents[0])
	newer[8]++ // the format, which the control record begins with
	for name, batch := range map[string]struct {
		number  uint64
		content []byte
		want    error
	}{
		"a batch is missing":               {2, l.contents[1], ErrLoss},
		"a batch under another number":     {1, l.contents[1], ErrDamaged},
		"a batch without its end":          {1, l.contents[0][:len(l.contents[0])-1], ErrDamaged},
		"a batch of three bytes":           {1, l.contents[0][:3], ErrDamaged},
		"a batch without its entries":      {1, slices.Concat(l.contents[0][:2], []byte{0, 0, 0, 0}, l.contents[0][6:][:l.contents[0][1]]), ErrLoss},
		"a batch that is another's follow": {1, renumbered(l), ErrLoss},
		"a batch of a newer version":       {1, newer, content.ErrRecord},
	} {
		s := l.follower(t, t.TempDir())
		if err := s.Take(batch.number, batch.content); !errors.Is(err, batch.want) {
			t.Errorf("%s: %v, want %v", name, err, batch.want)
		}
		if err := l.follow(s); err != nil || s.Control().Live != 3 {
			t.Errorf("%s: behind it the log gives %v, and %d packets", name, err, s.Control().Live)
		}
	}
}

// The race detector finds what they read while a batch is taken.
func TestFilesAreCopiedFromAStoreWhileItFollows(t *testing.T) {
	l := decides(t, 300)
	s := l.follower(t, t.TempDir())
	followed := make(chan error, 1)
	go func() { followed <- l.follow(s) }()
	for isDone := false; !isDone; {
		select {
		case err := <-followed:
			if isDone = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
		f, err := s.Files()
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if f.mark.epoch != f.control.Epoch || f.mark.batch != f.control.Batch {
			t.Fatalf("the anchor is of %+v, the control record is %+v", f.mark, f.control)
		}
	}
}

// renumbered is the second batch under the number of the first.
func renumbered(l *sharedLog) []byte {
	c, control, err := readContent(2, l.contents[1])
	if err != nil {
		panic(err)
	}
	control.Batch = 1
	c.Control = content.AppendControl(nil, &control)
	return bytes.Join(append([][]byte{appendContentHead(nil, &c)}, c.Body...), nil)
}

func TestTheLogIsReleasedUpToWhatTablesHave(t *testing.T) {
	l := decided(t)
	s := l.follower(t, t.TempDir())
	l.released.Store(0)
	l.early = func(upto uint64) bool { return upto > s.tables.List().Floor.Batch }
	if err := l.follow(s); err != nil {
		t.Fatal(err)
	}
	settled(t, s)
	if l.released.Load() != 3 || l.isEarly.Load() || s.Figures().FlushedBatch != 3 {
		t.Errorf("released up to %d, before tables had it: %t; they have %d", l.released.Load(), l.isEarly.Load(), s.Figures().FlushedBatch)
	}
}

func TestWhatIsReleasedAtAnOpenIsInTablesOnTheDevice(t *testing.T) {
	l := decided(t)
	s := l.follower(t, t.TempDir())
	if err := l.follow(s); err != nil {
		t.Fatal(err)
	}
	dir := copiedAtOnce(t, s)
	if floor, err := Floor(dir); floor != 0 || err != nil {
		t.Fatalf("its tables have batch %d, %v", floor, err)
	}
	l.released.Store(0)
	l.follower(t, dir)
	if floor, err := Floor(dir); l.released.Load() != 3 || floor != 3 || err != nil {
		t.Errorf("released up to %d, and tables have %d, %v", l.released.Load(), floor, err)
	}
	if floor, err := Floor(filepath.Join(dir, "none")); floor != 0 || err != nil {
		t.Errorf("the tables of no folder have batch %d, %v", floor, err)
	}
}

func TestTheTimesOfBatchesAreOfTheClockThatIsGiven(t *testing.T) {
	l := &sharedLog{}
	s := l.follower(t, t.TempDir())
	if err := s.Own(l.Append, func() int64 { return 5000 }); err != nil {
		t.Fatal(err)
	}
	var b content.Batch
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 1}, &content.Packet{Expiry: 1})
	applied(t, s, &b)
	if at := s.Control().Time; at != 5000 {
		t.Errorf("the batch is of %d", at)
	}
	settled(t, s)
	if _, _, err := s.mergeOnce(s.ctx, true); err != nil {
		t.Fatal(err)
	}
	ids, _ := scanned(t, s)
	if damage := damageOf(s, content.PacketID{Queue: 1, Priority: 1, Seq: 1}); len(ids) != 1 || damage != nil {
		t.Errorf("what has expired is gone: %v, %v", ids, damage)
	}
}

// A packet in tables, whose delete is in a hole that was accepted, comes and goes behind it.
func TestWhatTheLogDeletesBehindAnAcceptedHoleStaysDeleted(t *testing.T) {
	var l sharedLog
	owner := l.follower(t, t.TempDir())
	if err := owner.Own(l.Append, now); err != nil {
		t.Fatal(err)
	}
	deleted := func() *content.Batch {
		var b content.Batch
		b.Delete(content.PacketID{Queue: 1, Priority: 1, Seq: 1}, content.Removed{})
		return &b
	}
	for _, b := range []*content.Batch{one(1, content.Packet{}), deleted(), one(2, content.Packet{}), one(3, content.Packet{}), one(1, content.Packet{}), deleted()} {
		applied(t, owner, b)
	}
	s := l.follower(t, t.TempDir())
	for batch := range uint64(3) {
		if err := s.Take(batch+1, l.contents[batch]); err != nil {
			t.Fatal(err)
		}
		if batch == 0 {
			settled(t, s)
		}
	}
	dir := killed(t, s)
	for _, log := range logFiles(t, dir) {
		edit(t, log, func(b []byte) []byte {
			at := bytes.LastIndex(b, []byte("HFRC")) - journalPage
			clear(b[at : at+journalPage])
			return b
		})
	}
	s = openTest(t, dir, Options{Window: minWindow, Release: l.Release, AcceptLoss: true, Cut: 3})
	if len(s.Accepted()) == 0 {
		t.Fatal("nothing was lost: the test proves nothing")
	}
	if err := s.Take(4, l.contents[3]); err != nil {
		t.Fatal(err)
	}
	settled(t, s) // so that the others come into a window of their own
	if err := l.follow(s); err != nil {
		t.Fatal(err)
	}
	settled(t, s)
	if ids, _ := scanned(t, s); len(ids) != 2 {
		t.Errorf("%v are there, want packets 2 and 3", ids)
	}
}
