package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/journal"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// maxFrozen is how many windows wait to become tables, besides the open one.
const maxFrozen = 2

// When nothing is written for restAfter the window is frozen, unless the last one was less than
// restEvery ago. One that is older than maxAge is frozen whatever is written.
const (
	restAfter = time.Second
	restEvery = 5 * time.Second
	maxAge    = 30 * time.Second
)

// A level 0 that has more groups or tables than this is merged.
const (
	mergeGroups = 16
	mergeTables = 32
)

// mergeTries is how often a merge is tried that takes more room than it may: windows became tables
// since it began. Deletions wait as long as none has failed, so the next one takes what is left.
const mergeTries = 3

// writeOut builds the tables of a window and puts them in force.
func (s *parts) writeOut(w *window) (err error) {
	records, err := s.journal.Window(w.from, w.upto)
	if err != nil {
		return err
	}
	defer records.Close()
	number := s.tables.List().Window + 1
	built, err := func() (_ tables.Built, err error) {
		defer journal.CatchFault(debug.SetPanicOnFault(true), func() {
			err = fmt.Errorf("%w: the device cannot read a part of a file", ErrDamaged)
		})
		return s.tables.Build(0, s.sizes.table(s.tables.List().Bytes), w.all(records, number))
	}()
	if err != nil {
		return err
	}
	floor := tables.Floor{Batch: w.upto.Batch, Segment: w.upto.Segment, Offset: uint64(w.upto.End), Sum: w.upto.Sum}
	return s.tables.Adopt(tables.Adoption{Add: built, Window: number, Floor: &floor})
}

// all gives the entries of a window as tables have them.
func (w *window) all(records *journal.Window, number uint64) iter.Seq2[tables.Entry, error] {
	return func(yield func(tables.Entry, error) bool) {
		w.graves = 0
		sorted := w.sorted()
		defer sortables.Put(&sorted)
		var key content.FixedKey // that nobody keeps
		for _, at := range sorted {
			key = at.key()
			e := tables.Entry{Key: key.Bytes(), Version: number}
			switch at.place {
			case controlPlace:
				e.Value = w.control
			case noPlace:
				e.Deleted = true
			default:
				p := w.entries.at(at.place)
				if e.Deleted, e.Expires = p.deleted, uint64(p.expires); !e.Deleted {
					e.Value = records.Bytes(journal.Place{Segment: p.segment, Offset: p.offset}, p.length)
				}
			}
			if e.Deleted {
				w.graves += int64(len(e.Key)) + content.EntryBytes
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// background does some work until Close, or until nobody knows what is in force: whenever it is
// told to, and after a rest where it worked or wants one. A failure is tried again after a second,
// doubling to half a minute, and when it is told: on a full disk what was popped meanwhile may have
// made the room that a merge needs.
func (s *Store) background(what work, tell <-chan struct{}, do func() (worked bool, rest time.Duration, err error)) {
	var next <-chan time.Time
	for wait := time.Second; ; {
		select {
		case <-tell:
		case <-next:
		case <-s.ctx.Done():
			return
		}
		worked, rest, err, over := s.once(what, do)
		if over {
			return
		}
		next = nil
		switch {
		case err != nil:
			next, wait = time.After(wait), min(2*wait, 30*time.Second)
		case worked || rest > 0:
			next = time.After(rest)
			fallthrough
		default:
			wait = time.Second
		}
	}
}

// once does some work once. over says that no more of it is done.
func (s *Store) once(what work, do func() (worked bool, rest time.Duration, err error)) (worked bool, rest time.Duration, err error, over bool) {
	begun := time.Now()
	worked, rest, err = do()
	if err == nil && worked {
		s.troubles.did(what, time.Since(begun))
	}
	return worked, rest, err, errors.Is(err, context.Canceled) || s.noted(what, err)
}

// flushNext writes the oldest frozen window out.
func (s *Store) flushNext() (worked bool, rest time.Duration, err error) {
	w := s.layers.oldest()
	if w == nil {
		return false, 0, nil
	}
	if err := s.flushOne(w); err != nil {
		return false, 0, err
	}
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.freezeIfFull() // it may have waited for this one
	return true, 0, nil
}

// flushOne writes the oldest window out, and gives up what the journal has of it.
func (s *Store) flushOne(w *window) (err error) {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	if s.layers.oldest() != w {
		return nil
	}
	list := s.tables.List()
	if list.Floor.Batch < w.upto.Batch {
		start := time.Now()
		err := s.writeOut(w)
		if isFull(err) { // the journal has room that nobody else could take
			if err = s.journal.DropSpares(); err == nil {
				err = s.writeOut(w)
			}
		}
		if err != nil {
			return fmt.Errorf("cannot write a window out: %w", err)
		}
		s.pace.measure(w.bytes, time.Since(start), s.sizes.window)
	}
	s.dead.Add(w.dead + w.graves)
	s.layers.drop()
	close(w.done)
	s.flushed.Store(time.Now().UnixNano())
	s.wake(s.room)
	s.wake(s.merge)
	s.wake(s.beside)
	s.noted(releasing, s.journal.Release(w.upto)) // the next flush tries again
	if s.opt.Release != nil {
		s.opt.Release(w.upto.Batch)
	}
	s.wake(s.next)
	return nil
}

// prepareSegments has the next segment of the journal ready before a batch needs it.
func (s *Store) prepareSegments() {
	for {
		select {
		case <-s.next:
			s.prepare()
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Store) prepare() {
	if err := s.journal.Prepare(); !isFull(err) {
		s.noted(preparing, err)
	}
}

// keepSpares has the journal keep files of its own where the disk may fill up: they are room that
// nobody else can take. One more is made at each call. A disk that was full has taken them.
func (s *Store) keepSpares() {
	_, spare := s.journal.Size()
	have, space := int(spare/s.sizes.segment), s.guard.get()
	switch {
	case have == 0 && s.noSegment.Load(): // no batch is taken, so nothing else makes one
		s.prepare()
	case space.Level != Normal || have > s.sizes.spares:
	case space.Free <= spareWindows*s.sizes.window:
		s.noted(preparing, s.journal.SetSpares(have))
	default:
		s.journal.KeepSpares(s.sizes.spares)
	}
}

// reserve has the journal own its spare files before packets take the last room: without them who
// else fills the disk leaves none to write a window out. It makes one more than a batch may use.
func (s *Store) reserve() {
	_, spare := s.journal.Size()
	have, space := int(spare/s.sizes.segment), s.guard.get()
	if have > s.sizes.spares || space.Level != Normal || space.Free >= 2*s.guard.keep {
		return
	}
	if err := s.journal.SetSpares(min(have+1, s.sizes.spares)); !isFull(err) {
		s.noted(preparing, err)
	}
}

// wake tells a goroutine that there may be something to do.
func (s *Store) wake(tell chan struct{}) {
	select {
	case tell <- struct{}{}:
	default:
	}
}

// mergeNext merges if that is due. It rests as long as it worked, unless there is much to do, also
// where that comes meanwhile.
func (s *Store) mergeNext() (worked bool, rest time.Duration, err error) {
	due, all, much := s.mergeDue()
	if rest = time.Until(s.rested); !due || rest > 0 && !much {
		return false, max(rest, 0), nil
	}
	// What was merged beside the last one goes down first: a deep merge leaves level 1 to such.
	all = all && (s.short() || s.tables.List().Besides == 0)
	begun := time.Now()
	if worked, _, err = s.mergeOnce(s.ctx, all); worked {
		s.wake(s.room)
	}
	if err != nil { // it is tried again as background does
		return worked, 0, err
	}
	rest = time.Since(begun)
	s.rested = time.Now().Add(rest)
	if _, _, much = s.mergeDue(); much {
		rest = 0
	}
	return worked, rest, err
}

// mergeOnce merges all tables, or those that pay. On a full disk it may be only a part of level 0,
// and whole is false. What the journal has of the disk, and nobody else can take, is room for it,
// but for a window that waits: without that room this might never be written out. A merge that only
// may pay does not get it.
func (s *Store) mergeOnce(ctx context.Context, all bool) (worked, whole bool, err error) {
	for try := 1; ; try++ {
		before, o := s.dead.Load(), s.mergeOptions(s.tables.List(), all)
		merged, err := s.merged(ctx, o)
		if err == nil && o.All {
			s.buried(max(before-merged.Freed, 0)) // what else was taken for dead
			s.unsure.Store(false)
		}
		if !isFull(err) || try == mergeTries || s.mayPay() && !s.short() {
			if err != nil {
				s.again.Store(time.Now().Add(time.Minute).UnixNano())
			}
			return merged.Any, o.All, err
		}
		if s.layers.oldest() == nil {
			if err := s.journal.DropSpares(); err != nil {
				return false, false, err
			}
		}
	}
}

// mergeBeside merges windows beside a long merge, where the disk has room for both.
func (s *Store) mergeBeside() (worked bool, rest time.Duration, err error) {
	list, space, takes := s.tables.List(), s.guard.get(), s.tables.Beside()
	if space.Level > Normal || space.Free < spareWindows*s.sizes.window || !besideDue(list.Zero, takes) {
		return false, 0, nil
	}
	o := s.mergeOptions(list, false)
	o.Beside = true
	merged, err := s.merged(s.ctx, o)
	return merged.Any, 0, err
}

// besideDue says whether a merge beside another one is due. zero is how many tables level 0 has,
// takes how many of them it would merge. Many are worth it, as it writes all of level 1 anew. So
// are fewer, if data waits and will not when they are gone.
func besideDue(zero, takes int) bool {
	waits := func(tables int) bool { return float64(tables) > dataPart*waitTables }
	return takes > mergeGroups || waits(zero) && !waits(zero-takes)
}

// merged merges. Its steps tell what they left out. Of tables that stay, since the merge ended
// early, that is dead still.
func (s *Store) merged(ctx context.Context, o tables.MergeOptions) (tables.Merged, error) {
	m, err := s.tables.Merge(ctx, o)
	s.buried(m.Freed - m.Dropped)
	return m, err
}

// mergeDue says whether a merge is due, one of all tables, and so much that it does not rest.
func (s *Store) mergeDue() (due, all, much bool) {
	list := s.tables.List()
	dead, live := s.deadAndLive(list)
	short, allowed := s.short(), live+s.sizes.allowance()
	all = short || dead > allowed || s.mayPay()
	due = all || list.Windows > mergeGroups || list.Zero > mergeTables
	return due, all, short || list.Zero > mergeTables || dead > 2*allowed
}

// mergeOptions returns how to merge in the room that there is. What is taken of level 0 stands
// beside what was made of it for a while: where there is no room for that, its oldest windows go
// down first. With less room than a window only what is dead can make some.
func (s *Store) mergeOptions(list *tables.List, all bool) tables.MergeOptions {
	room := s.guard.roomToMerge()
	o := tables.MergeOptions{All: all, Size: s.sizes.table(list.Bytes), Now: s.expired.Load(),
		Step: s.sizes.step(room, list.Bytes), Room: func(comes, goes int64) error {
			s.opt.tune.step(comes)
			return s.guard.roomLeft(comes - goes)
		}, Stepped: func(dropped int64) int64 {
			s.buried(dropped)
			s.wake(s.room)
			return s.sizes.step(s.guard.roomToMerge(), s.tables.List().Bytes)
		}}
	upper := room - o.Step
	if list.ZeroBytes > upper && (upper >= s.sizes.window || !all) {
		o.All, o.Upper = false, upper
	}
	return o
}

// buried notes that n bytes are gone that nobody needs.
func (s *Store) buried(n int64) {
	for dead := s.dead.Load(); !s.dead.CompareAndSwap(dead, max(0, dead-n)); dead = s.dead.Load() {
	}
}

// short says that the disk has little room, and that a merge of all tables gives some back: much,
// or most of what they take.
func (s *Store) short() bool {
	dead, live := s.deadAndLive(s.tables.List())
	return s.guard.get().Level > Normal && dead > min(s.sizes.allowance(), live+s.sizes.window/4)
}

// mayPay says that room is asked for, and that only a merge of all tables shows what is dead.
func (s *Store) mayPay() bool {
	return s.unsure.Load() && s.tight.Load() && time.Now().UnixNano() > s.again.Load()
}

// MakeRoom has a store that follows merge all its tables, once, if it was opened without a scan: it
// does not know then what is dead. A merge that fails is tried again a minute later.
func (s *Store) MakeRoom() {
	s.tight.Store(true)
	if s.mayPay() {
		s.wake(s.merge)
	}
}

// deadAndLive estimates what the tables hold that nobody needs, and the rest, in bytes.
func (s *Store) deadAndLive(l *tables.List) (dead, live int64) {
	dead = min(s.dead.Load(), l.Bytes)
	return dead, l.Bytes - dead
}
