package storage

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/journal"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// layers holds what a read looks through, the newest first: the open window, the frozen ones that
// wait to become tables, and the tables.
//
// Invariant: the three together are the state after the last batch, at every moment, for every key.
// Only a packet that is gone may seem to be there: nobody asks for one.
type layers struct {
	journal *journal.Journal
	tables  *tables.Set

	mu     sync.RWMutex // guards what follows; a reader of the journal holds it, so that no segment is used again meanwhile
	open   *window
	frozen []*window // the oldest first
	at     time.Time // when the first batch of open was taken; zero: there was none
	last   time.Time // when the last batch was taken
}

// take takes a batch that is in the journal into the open window. hides is what each entry hides of
// the tables. Where it is nil only the sum is known, all, and a part of that is the window's own.
func (l *layers) take(p journal.Place, upto journal.Mark, c *journal.Content, hides []uint32, all uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = time.Now()
	if l.at.IsZero() {
		l.at = l.last
	}
	l.open.logged += upto.End - int64(p.Offset) // with the padding
	before := l.open.gone
	err := l.open.take(p, c.Overhead(), c.Control, c.Body, c.Entries, hides, upto)
	if hidden := int64(all) - (l.open.gone - before); hides == nil && hidden > 0 {
		l.open.dead += hidden
	}
	return err
}

// freeze closes the open window to further batches. It returns the last window that waits to become
// tables, nil if none does. Who holds commitMu calls it.
func (l *layers) freeze() *window {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.open; w.upto != w.from {
		l.frozen = append(l.frozen, w)
		l.open, l.at = newWindow(w.upto), time.Time{}
		l.open.holes = w.holes // what lies below is the same
	}
	if n := len(l.frozen); n > 0 {
		return l.frozen[n-1]
	}
	return nil
}

// oldest returns the window to become tables next; nil if there is none.
func (l *layers) oldest() *window {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.frozen) == 0 {
		return nil
	}
	return l.frozen[0]
}

// drop forgets the oldest frozen window, which is in tables.
func (l *layers) drop() {
	l.mu.Lock()
	w := l.frozen[0]
	l.frozen = slices.Delete(l.frozen, 0, 1)
	l.mu.Unlock()
	w.release()
}

// waiting returns the bytes of all windows, their bytes in the journal, and how many are frozen.
func (l *layers) waiting() (bytes, logged int64, frozen int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	bytes, logged = l.open.bytes, l.open.logged
	for _, w := range l.frozen {
		bytes, logged = bytes+w.bytes, logged+w.logged
	}
	return bytes, logged, len(l.frozen)
}

// pendingOf returns the value of a key that a window has, as near reads it. known says that one has
// it; ok that it was not deleted.
func (l *layers) pendingOf(near *nearby, key content.FixedKey) (value []byte, known, ok bool, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s, known := l.open.find(key)
	for i := len(l.frozen) - 1; i >= 0 && !known; i-- {
		s, known = l.frozen[i].find(key)
	}
	if !known || s.deleted {
		return nil, known, false, nil
	}
	if value, err = near.read(l.journal, s, l.open.upto); err != nil {
		return nil, true, false, fmt.Errorf("%w: cannot read the journal: %w", ErrDamaged, err)
	}
	return value, true, true, nil
}
