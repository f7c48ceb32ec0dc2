package load

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage"
)

// keyLoad is what a loader knows of strings and hashes. The dump has no numbers of them: they get
// the next ones, in their order, which are versions, too.
type keyLoad struct {
	given uint64 // numbers given to records of the dump, those that an earlier run stored included
	head  uint64 // number of the last string or hash
	skip  bool   // it was left out, and so are its fields

	// Of a merge: what the folder had.
	taken   map[string]uint64 // the numbers of its strings and hashes
	lists   map[string]bool   // full names of its queues with packets or settings
	checked *storage.Queue    // the last one that checkList looked at
	counted uint32            // the last one that takeList looked at
}

// takeKey notes a string or a hash of the folder.
func (l *loader) takeKey(h *storage.Head) {
	if !l.Merge {
		return
	}
	if l.keys.taken == nil {
		l.keys.taken = make(map[string]uint64)
	}
	l.keys.taken[storage.FullName(h.Database, h.Name)] = h.ID
}

// takeList notes that a queue of the folder has packets or settings.
func (l *loader) takeList(names map[uint32]string, id uint32) {
	if !l.Merge || id == l.keys.counted {
		return
	}
	if l.keys.lists == nil {
		l.keys.lists = make(map[string]bool)
	}
	l.keys.counted = id
	l.keys.lists[names[id]] = true
}

// isTaken says that the folder had a string or hash of that full name before the load.
func (l *loader) isTaken(name string) bool {
	id, there := l.keys.taken[name]
	return there && id <= l.state.KeyBase
}

// checkList refuses packets or settings of a queue whose name is that of a string or hash of the
// folder.
func (l *loader) checkList(q *storage.Queue) error {
	if q == l.keys.checked {
		return nil
	}
	l.keys.checked = q
	if l.isTaken(storage.FullName(q.Database, q.Name)) {
		return fmt.Errorf("the folder has a string or hash called %.100q, and the dump has a queue of that name with packets or settings: "+
			"load the dump into a folder of its own", q.Name)
	}
	return nil
}

// number gives the next number to the record that is being handed out.
func (l *loader) number() uint64 {
	l.keys.given++
	n := l.state.KeyBase + l.keys.given
	l.marks.LastKey = max(l.marks.LastKey, n)
	return n
}

func (l *loader) putHead(h *storage.Head) error {
	stored, err := l.stored()
	if err != nil {
		return err
	}
	l.keys.head = l.number()
	name := storage.FullName(h.Database, h.Name)
	taken := l.isTaken(name) || l.keys.lists[name]
	l.keys.skip = taken || h.Expired(l.Now)
	switch {
	case stored:
		return nil
	case taken:
		l.state.Taken++
		return nil
	case l.keys.skip:
		return nil
	}
	if err := l.roomForKey(h.Name, h.Value); err != nil {
		return err
	}
	put := *h
	put.ID, put.Version = l.keys.head, l.keys.head
	l.batch.PutHead(&put, storage.Mark{})
	l.state.Keys++
	return nil
}

func (l *loader) putField(_ *storage.Head, f *storage.Field) error {
	stored, err := l.stored()
	if err != nil {
		return err
	}
	n := l.number()
	if stored || l.keys.skip {
		return nil
	}
	if err := l.roomForKey(f.Name, f.Value); err != nil {
		return err
	}
	put := *f
	put.Hash, put.ID, put.Version = l.keys.head, n, n
	l.batch.PutField(&put, storage.Mark{})
	return nil
}

// roomForKey makes room for a string, a hash or a field.
func (l *loader) roomForKey(name, value []byte) error {
	n := dump.KeyBound(name, value)
	if err := l.roomFor(n, 0); err != nil {
		return err
	}
	if n > l.limits.MaxRecord {
		return fmt.Errorf("name and value have a record of %d bytes: a folder on a disk this small takes at most %d", n, l.limits.MaxRecord)
	}
	return nil
}
