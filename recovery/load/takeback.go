package load

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/holdfast-queue/holdfast/storage"
)

// mark is the load record of the store (DUMP.md, section load record): the marks of the folder
// before the load, 0 of a folder that held nothing. What has these numbers or higher ones is of the
// load.
type mark struct {
	Version   int    `msgpack:"version"`
	NextSeq   uint64 `msgpack:"next_sequence"`
	NextQueue uint32 `msgpack:"next_queue"`
	LastKey   uint64 `msgpack:"last_key"`
}

// markVersion is 2: version 1 was of loads that went on where they had stopped.
const markVersion = 2

func encodeMark(m storage.Marks) []byte {
	rec, err := msgpack.Marshal(&mark{markVersion, m.NextSeq, m.NextQueue, m.LastKey})
	if err != nil {
		panic(err) // of numbers in memory
	}
	return rec
}

// Abandon takes back what a load into the folder dir has stored that was cut short. The report
// counts its packets.
func Abandon(dir string) (Report, error) {
	l := &loader{ctx: context.Background(), dir: dir}
	if _, err := os.Stat(dir); err != nil { // opening would make the folder
		return l.report, fmt.Errorf("%w: %w", ErrNothingToAbandon, err)
	}
	if err := l.open(); err != nil {
		return l.report, err
	}
	if l.store.Load() == nil {
		return l.report, l.close(fmt.Errorf("%w: %s", ErrNothingToAbandon, dir))
	}
	err := l.takeBack()
	return l.report, l.close(err)
}

// batchDeletes is how many records takeBack deletes at a time: deletes have few bytes.
const batchDeletes = 1 << 16

// takeBack deletes what an earlier load has stored, and at last the load record. It can be stopped
// at any moment, and done again.
func (l *loader) takeBack() error {
	var m mark
	if err := msgpack.Unmarshal(l.store.Load(), &m); err != nil || m.Version != markVersion {
		return fmt.Errorf("another version of holdfast has begun a load into %s, and only that one can end it: load the dump into a new folder", l.dir)
	}
	s, b := l.store, &storage.Batch{}
	apply := func() error {
		if err := s.Apply(b); err != nil {
			return fmt.Errorf("take an earlier load back: %w", err)
		}
		b.Reset()
		return l.ctx.Err()
	}
	remove := func(loaded bool, one func()) error {
		if !loaded {
			return nil
		}
		if one(); b.Len() < batchDeletes {
			return nil
		}
		return apply()
	}
	version := func(version uint64, size int) storage.Mark {
		return storage.Mark{Version: version, Large: storage.IsLarge(size)}
	}
	err := cmp.Or( // one after the other
		s.Packets(func(id storage.PacketID, p *storage.Meta) error {
			return remove(id.Seq >= m.NextSeq, func() {
				b.Delete(id, storage.Removed{Expires: p.Expiry != 0, Large: p.Large})
				l.report.Packets++
			})
		}),
		s.Deliveries(func(d *storage.Delivery, stored storage.Stored) error {
			return remove(d.Identity >= m.NextSeq, func() { b.DeleteDelivery(d.Identity, stored) })
		}),
		s.Uniques(func(u *storage.Unique) error {
			return remove(u.Identity >= m.NextSeq, func() { b.DeleteUnique(u.UniqueID) })
		}),
		s.Fields(func(f *storage.Field) error {
			return remove(f.ID > m.LastKey, func() { b.DeleteField(f.Hash, f.ID, version(f.Version, f.Size)) })
		}),
		s.Heads(func(h *storage.Head) error {
			return remove(h.ID > m.LastKey, func() { b.DeleteHead(h.ID, version(h.Version, h.Size)) })
		}),
		s.Queues(func(q storage.Queue) error { return remove(q.ID >= m.NextQueue, func() { b.DeleteQueue(q.ID) }) }),
		apply(),
	)
	if err != nil {
		return err
	}
	b.SetLoad(nil)
	return apply()
}
