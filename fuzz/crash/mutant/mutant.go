// Package mutant plants faults between the broker and the storage, one at a time, to show that the
// crash harness finds them: a harness that has never failed proves nothing.
package mutant

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/storage"
)

// None is the wrapper without a fault: it takes every batch apart and puts it together again, as
// the others do, so it shows that the findings are not the wrapper's own.
const None = "none"

// faults lists the planted bugs by name.
func faults() map[string]func(*store) {
	return map[string]func(*store){
		None: func(*store) {},

		"ack-before-commit":    ackBeforeCommit,
		"delete-not-written":   func(s *store) { s.drop = isDelete },
		"last-record-dropped":  lastRecordDropped,
		"batch-torn":           batchTorn,
		"batches-reordered":    batchesReordered,
		"batch-applied-twice":  batchAppliedTwice,
		"definition-dropped":   func(s *store) { s.drop = isDefinition },
		"sequence-reused":      sequenceReused,
		"expiry-forgotten":     func(s *store) { s.meta = forgetExpiry; s.unchecked = true },
		"key-forgotten":        func(s *store) { s.meta = forgetKey },
		"packet-skipped":       func(s *store) { s.meta = skipSome(); s.unchecked = true },
		"record-of-another":    func(s *store) { s.shiftReads = true },
		"payload-of-large-cut": func(s *store) { s.cutLarge = true },
		"move-not-deleted":     func(s *store) { move(s, storage.OpDelete) },
		"move-not-put":         func(s *store) { move(s, storage.OpPut) },
		"first-put-dropped":    firstPutDropped,
	}
}

// Names lists the faults, None among them.
func Names() []string {
	var names []string
	for name := range faults() {
		names = append(names, name)
	}
	return names
}

// Wrap returns what daemon.Config.WrapStore takes to plant the named fault.
func Wrap(name string) (func(daemon.Store) daemon.Store, error) {
	plant, ok := faults()[name]
	if !ok {
		return nil, fmt.Errorf("fault %q is not known: expected one of %v", name, Names())
	}
	return func(inner daemon.Store) daemon.Store {
		s := &store{Store: inner, marks: inner.Control().Marks}
		s.apply = s.rebuilt
		plant(s)
		return s
	}, nil
}

// store is a daemon.Store with a fault. Its fields are set before it is used; the committer alone
// touches what changes afterwards, but for what mu guards.
type store struct {
	daemon.Store
	apply      func(*storage.Batch) error
	drop       func(storage.Op) bool      // operations that are not written
	meta       func(m *storage.Meta) bool // changes what a restart sees of a packet; false hides it
	control    func(c *storage.Control)   // changes what a restart sees of the control record
	settle     func() error               // brings what is held back to the store
	unchecked  bool                       // the control record is not compared
	shiftReads bool                       // a read of several packets mixes them up
	cutLarge   bool                       // a long payload loses its end
	marks      storage.Marks
}

// Apply implements broker.Store.
func (s *store) Apply(b *storage.Batch) error { return s.apply(b) }

// Control implements recovery.Source.
func (s *store) Control() storage.Control {
	c := s.Store.Control()
	if s.control != nil {
		s.control(&c)
	}
	return c
}

// Verify implements recovery.Source.
func (s *store) Verify(scan storage.Tally) error {
	if s.unchecked {
		return nil
	}
	return s.Store.Verify(scan)
}

// Packets implements recovery.Source.
func (s *store) Packets(fn func(storage.PacketID, *storage.Meta) error) error {
	if s.meta == nil {
		return s.Store.Packets(fn)
	}
	return s.Store.Packets(func(id storage.PacketID, m *storage.Meta) error {
		changed := *m
		if !s.meta(&changed) {
			return nil
		}
		return fn(id, &changed)
	})
}

// Read implements broker.Store.
func (s *store) Read(ids []storage.PacketID, fn func(i int, record []byte) error) error {
	if s.settle != nil {
		if err := s.settle(); err != nil {
			return err
		}
	}
	if !s.shiftReads {
		return s.Store.Read(ids, fn)
	}
	return s.Store.Read(ids, func(i int, record []byte) error { return fn((i+1)%len(ids), record) })
}

// Close implements daemon.Store.
func (s *store) Close() error {
	if s.settle != nil {
		if err := s.settle(); err != nil {
			return err
		}
	}
	return s.Store.Close()
}

// rebuilt applies a copy of the batch.
func (s *store) rebuilt(b *storage.Batch) error {
	c, err := s.copy(s.ops(b))
	if err != nil {
		return err
	}
	return s.Store.Apply(c)
}

// ops lists what the batch would write and the fault lets through.
func (s *store) ops(b *storage.Batch) []storage.Op {
	var all []storage.Op
	b.Each(func(op storage.Op) {
		if s.drop == nil || !s.drop(op) {
			all = append(all, op)
		}
	})
	return all
}

// copy makes a batch of operations, with marks that cover them.
func (s *store) copy(ops []storage.Op) (*storage.Batch, error) {
	b := new(storage.Batch)
	for _, op := range ops {
		switch op.Kind {
		case storage.OpPut, storage.OpReplace:
			var p storage.Packet
			if err := storage.DecodeRecord(op.Record, &p); err != nil {
				return nil, err
			}
			if s.cutLarge && storage.IsLarge(len(p.Payload)) {
				p.Payload = p.Payload[:len(p.Payload)-1]
			}
			if op.Kind == storage.OpReplace {
				b.Replace(op.ID, &p, op.Removed)
			} else {
				b.Put(op.ID, &p)
			}
			s.marks.NextSeq = max(s.marks.NextSeq, op.ID.Seq+1)
		case storage.OpDelete:
			b.Delete(op.ID, op.Removed)
		case storage.OpPutQueue:
			b.PutQueue(op.Queue)
			s.marks.NextQueue = max(s.marks.NextQueue, op.Queue.ID+1)
		case storage.OpDeleteQueue:
			b.DeleteQueue(op.Queue.ID)
		}
	}
	b.SetMarks(s.marks)
	return b, nil
}

func isDelete(op storage.Op) bool     { return op.Kind == storage.OpDelete }
func isDefinition(op storage.Op) bool { return op.Kind == storage.OpPutQueue }

// late is how far a faulty commit trails behind: the time in which a kill shows it.
const late = 10 * time.Millisecond

// ackBeforeCommit reports a batch as durable and writes it a little later.
func ackBeforeCommit(s *store) {
	var pending sync.WaitGroup
	var mu sync.Mutex // guards failed
	var failed error
	queue := make(chan *storage.Batch, 8)
	go func() { // ends with the process
		for b := range queue {
			time.Sleep(late)
			if err := s.Store.Apply(b); err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
			}
			pending.Done()
		}
	}()
	s.apply = func(b *storage.Batch) error {
		c, err := s.copy(s.ops(b))
		if err != nil {
			return err
		}
		pending.Add(1)
		queue <- c
		return nil
	}
	s.settle = func() error {
		pending.Wait()
		mu.Lock()
		defer mu.Unlock()
		return failed
	}
}

// lastRecordDropped leaves out the last packet operation of every eighth batch. A dropped delete of
// a dropped put would show in the control record at the next start, which is a second net: it is off
// here and in other faults, so that the clients' ledger is what must find them.
func lastRecordDropped(s *store) {
	s.unchecked = true
	n := 0
	s.apply = func(b *storage.Batch) error {
		ops := s.ops(b)
		n++
		for i := len(ops) - 1; i >= 0 && n%8 == 0; i-- {
			if ops[i].Kind == storage.OpPut || ops[i].Kind == storage.OpDelete {
				ops = append(ops[:i], ops[i+1:]...)
				break
			}
		}
		c, err := s.copy(ops)
		if err != nil {
			return err
		}
		return s.Store.Apply(c)
	}
}

// batchTorn writes a batch in two transactions, every second operation a little later.
func batchTorn(s *store) {
	s.apply = func(b *storage.Batch) error {
		var parts [2][]storage.Op
		for i, op := range s.ops(b) {
			parts[i%2] = append(parts[i%2], op)
		}
		for i, part := range parts {
			c, err := s.copy(part)
			if err != nil {
				return err
			}
			if err := s.Store.Apply(c); err != nil {
				return err
			}
			if i == 0 {
				time.Sleep(late)
			}
		}
		return nil
	}
}

// batchesReordered writes each second batch before the one that came before it.
func batchesReordered(s *store) {
	s.unchecked = true
	var held *storage.Batch
	s.settle = func() error {
		if held == nil {
			return nil
		}
		b := held
		held = nil
		return s.Store.Apply(b)
	}
	s.apply = func(b *storage.Batch) error {
		c, err := s.copy(s.ops(b))
		if err != nil {
			return err
		}
		if held == nil {
			held = c
			return nil
		}
		if err := s.Store.Apply(c); err != nil {
			return err
		}
		return s.settle()
	}
}

func batchAppliedTwice(s *store) {
	s.apply = func(b *storage.Batch) error {
		if err := s.rebuilt(b); err != nil {
			return err
		}
		return s.rebuilt(b)
	}
}

// sequenceReused starts each time with the sequences of some thousand packets ago.
func sequenceReused(s *store) {
	s.control = func(c *storage.Control) { c.NextSeq -= min(c.NextSeq-1<<63, 5000) }
}

func forgetExpiry(m *storage.Meta) bool {
	m.Expiry = 0
	return true
}

func forgetKey(m *storage.Meta) bool {
	m.Key = nil
	return true
}

// skipSome hides one packet in two hundred.
func skipSome() func(*storage.Meta) bool {
	n := 0
	return func(*storage.Meta) bool {
		n++
		return n%200 != 0
	}
}

// firstPutDropped leaves out one in 128 packets with a key that no packet is deleted for in the same batch:
// of a board, the update that makes an item anew. The item's next update writes it again.
func firstPutDropped(s *store) {
	s.unchecked = true
	keys := map[storage.PacketID]string{} // of the packets that were put
	n := 0
	s.apply = func(b *storage.Batch) error {
		var ops []storage.Op
		deleted := map[string]bool{} // by queue and key
		for _, op := range s.ops(b) {
			switch op.Kind {
			case storage.OpDelete:
				deleted[keys[op.ID]] = true
				delete(keys, op.ID)
			case storage.OpPut:
				key, err := keyOf(op)
				if err != nil {
					return err
				}
				keys[op.ID] = key
				if deleted[key] {
					break
				}
				if n++; n%128 == 0 {
					continue
				}
			}
			ops = append(ops, op)
		}
		c, err := s.copy(ops)
		if err != nil {
			return err
		}
		return s.Store.Apply(c)
	}
}

// keyOf tells packets apart by queue and key.
func keyOf(put storage.Op) (string, error) {
	var p storage.Packet
	err := storage.DecodeRecord(put.Record, &p)
	return fmt.Sprint(put.ID.Queue, p.Key), err
}

// move leaves out one half of each eighth move: of a packet that a batch deletes and puts again under
// the same key at another place.
func move(s *store, half storage.OpKind) {
	s.unchecked = true
	keys := map[storage.PacketID]string{} // of the packets that were put
	n := 0
	s.apply = func(b *storage.Batch) error {
		ops := s.ops(b)
		there := map[string]int{} // by queue and key: place of the delete in ops
		var left []int
		for i, op := range ops {
			switch op.Kind {
			case storage.OpDelete:
				if key, known := keys[op.ID]; known {
					there[key] = i
				}
				delete(keys, op.ID)
			case storage.OpPut:
				key, err := keyOf(op)
				if err != nil {
					return err
				}
				keys[op.ID] = key
				at, moved := there[key]
				if !moved {
					continue
				}
				if n++; n%8 != 0 {
					continue
				}
				if half == storage.OpPut {
					at = i
				}
				left = append(left, at)
			}
		}
		slices.Sort(left)
		for _, at := range slices.Backward(left) {
			ops = slices.Delete(ops, at, at+1)
		}
		c, err := s.copy(ops)
		if err != nil {
			return err
		}
		return s.Store.Apply(c)
	}
}
