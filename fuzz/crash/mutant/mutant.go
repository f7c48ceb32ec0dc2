// Package mutant plants one fault at a time between the broker and the storage, to show that the
// crash harness finds it. A harness that has never failed proves nothing.
package mutant

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// None is the wrapper without a fault. Like the others it takes every batch apart and puts it
// together again, so it shows that the findings do not come from the wrapper.
const None = "none"

// faults lists the planted bugs by name.
func faults() map[string]func(*store) {
	return map[string]func(*store){
		None: func(*store) {},

		"ack-before-commit":    ackBeforeCommit,
		"delete-not-written":   func(s *store) { s.edit = without(content.OpDelete) },
		"last-record-dropped":  lastRecordDropped,
		"batch-torn":           batchTorn,
		"batches-reordered":    batchesReordered,
		"batch-applied-twice":  batchAppliedTwice,
		"definition-dropped":   func(s *store) { s.edit = without(content.OpPutQueue) },
		"sequence-reused":      sequenceReused,
		"expiry-forgotten":     func(s *store) { s.meta = forgetExpiry; s.unchecked = true },
		"key-forgotten":        func(s *store) { s.meta = forgetKey },
		"packet-skipped":       func(s *store) { s.meta = skipSome(); s.unchecked = true },
		"tags-forgotten":       func(s *store) { s.meta = forgetTags },
		"tags-of-another":      tagsOfAnother,
		"tags-not-written":     func(s *store) { s.packet = func(p *content.Packet) { p.Tags = nil } },
		"dropped-stay":         droppedStay,
		"worst-kept":           worstKept,
		"closed-forgotten":     func(s *store) { forgetSetting(s, func(of *content.Settings) { of.Closed = false }) },
		"bound-forgotten":      func(s *store) { forgetSetting(s, func(of *content.Settings) { of.Bound = 0 }) },
		"full-forgotten":       func(s *store) { forgetSetting(s, func(of *content.Settings) { of.Full = 0 }) },
		"size-forgotten":       func(s *store) { s.meta = forgetSize; s.unchecked = true },
		"pushes-torn":          pushesTorn,
		"pause-forgotten":      func(s *store) { forgetSetting(s, func(of *content.Settings) { of.PauseIn = false }) },
		"unique-forgotten":     uniqueForgotten,
		"record-of-another":    func(s *store) { s.shiftReads = true },
		"payload-of-large-cut": func(s *store) { s.cutLarge = true },
		"move-not-deleted":     func(s *store) { halfMove(s, content.OpDelete) },
		"move-not-put":         func(s *store) { halfMove(s, content.OpPut) },
		"first-put-dropped":    firstPutDropped,
		"drop-forgotten":       dropForgotten,
		"values-later":         valuesLater,
		"value-dropped":        valueDropped,
		"value-never-expires":  valueNeverExpires,
		"value-expires-early":  valueExpiresEarly,
		"attempt-lost":         attemptLost,
		"token-repeated":       tokenRepeated,
		"lease-without-end":    func(s *store) { forgetOf(s, content.Claimed, func(d *content.Delivery) { d.Until += 3_600_000 }) },
		"cancel-forgotten":     func(s *store) { forgetOf(s, content.Claimed, func(d *content.Delivery) { d.Cancelled = false }) },
		"dead-and-ready":       deadAndReady,
		"death-forgotten":      func(s *store) { forgetOf(s, content.Dead, func(d *content.Delivery) { d.State = content.Ready }) },
		"ack-forgotten":        ackForgotten,
		"delay-forgotten":      func(s *store) { forgetOf(s, content.Delayed, func(d *content.Delivery) { d.Until = 0 }) },
		"origin-forgotten":     func(s *store) { forgetOf(s, content.Ready, func(d *content.Delivery) { d.Origin = 0 }) },
		"done-forgotten":       func(s *store) { forgetOf(s, content.Done, func(d *content.Delivery) { d.State = content.Ready }) },
		"done-not-kept":        doneNotKept,
		"notes-forgotten":      func(s *store) { s.edit = without(content.OpPutNote) },
		"extension-forgotten":  extensionForgotten,
		"counters-forgotten":   countersForgotten,
		"share-forgotten":      func(s *store) { s.edit, s.unchecked = without(content.OpPutShare), true },
		"push-after-ack":       pushAfterAck,
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

// store is a daemon.Store with a fault. Its fields are set before it is used; mu guards what
// changes afterwards.
type store struct {
	daemon.Store
	mu         sync.Mutex
	apply      func(*content.Batch) error
	edit       func([]content.Op) []content.Op // what is written of a batch; nil for all
	meta       func(m *content.Meta) bool      // changes what a restart sees of a packet; false hides it
	delivery   func(d *content.Delivery)       // changes what a restart sees of what was tried with a packet
	control    func(c *content.Control)        // changes what a restart sees of the control record
	packet     func(p *content.Packet)         // changes what is written of a packet
	settle     func() error                    // writes what was delayed
	unchecked  bool                            // the control record is not compared
	shiftReads bool                            // a read of several packets mixes them up
	cutLarge   bool                            // a long payload loses its end
	marks      content.Marks
	must       bool // the batch is written, even if it has nothing but marks
}

// Apply implements broker.Store.
func (s *store) Apply(b *content.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apply(b)
}

// Control implements recovery.Source.
func (s *store) Control() content.Control {
	c := s.Store.Control()
	if s.control != nil {
		s.control(&c)
	}
	return c
}

// Verify implements recovery.Source. Unchecked, the store begins as if the scan had found all.
func (s *store) Verify(scan content.Tally) error {
	if s.unchecked {
		scan = s.Store.Control().Tally
	}
	return s.Store.Verify(scan)
}

// Walk implements recovery.Source.
func (s *store) Walk(v storage.Visitor) error {
	if packet := v.Packet; packet != nil && s.meta != nil {
		v.Packet = func(id content.PacketID, m *content.Meta, rec []byte, damage error) error {
			if damage == nil {
				changed := *m
				if m = &changed; !s.meta(m) {
					return nil
				}
			}
			return packet(id, m, rec, damage)
		}
	}
	if state := v.State; state != nil && s.delivery != nil {
		v.State = func(d *content.Delivery, stored content.Stored, damage error) error {
			changed := *d
			s.delivery(&changed)
			return state(&changed, stored, damage)
		}
	}
	return s.Store.Walk(v)
}

// Read implements broker.Store.
func (s *store) Read(ids []content.PacketID, fn func(i int, record []byte, damage error)) {
	if s.settle != nil {
		s.mu.Lock()
		_ = s.settle() // a store that has failed fails the next Apply, too
		s.mu.Unlock()
	}
	s.Store.Read(ids, func(i int, record []byte, damage error) {
		if s.shiftReads {
			i = (i + 1) % len(ids)
		}
		fn(i, record, damage)
	})
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
func (s *store) rebuilt(b *content.Batch) error { return s.write(s.ops(b)) }

// write applies a batch of operations.
func (s *store) write(ops []content.Op) error {
	b, err := s.copy(ops)
	if err != nil {
		return err
	}
	return s.Store.Apply(b)
}

// ops lists what the fault lets through of a batch.
func (s *store) ops(b *content.Batch) []content.Op {
	s.marks, _ = b.Marks()
	s.must = !b.Empty()
	var all []content.Op
	b.Each(func(op content.Op) { all = append(all, op) })
	if s.edit != nil {
		all = s.edit(all)
	}
	return all
}

// copy makes a batch of operations, with the marks of the batch that they come from.
func (s *store) copy(ops []content.Op) (*content.Batch, error) {
	b := new(content.Batch)
	for _, op := range ops {
		switch op.Kind {
		case content.OpPut, content.OpReplace:
			var p content.Packet
			if err := content.DecodeRecord(op.Record, &p); err != nil {
				return nil, err
			}
			if s.cutLarge && content.IsLarge(len(p.Payload)) {
				p.Payload = p.Payload[:len(p.Payload)-1]
			}
			if s.packet != nil {
				s.packet(&p)
			}
			if op.Kind == content.OpReplace {
				b.Replace(op.ID, &p, op.Removed)
			} else {
				b.Put(op.ID, &p)
			}
		case content.OpDelete:
			b.Delete(op.ID, op.Removed)
		case content.OpPutQueue:
			b.PutQueue(op.Queue)
		case content.OpPutCounters:
			b.PutCounters(op.Queue.ID, op.Queue.Counters)
		case content.OpDeleteQueue:
			b.DeleteQueue(op.Queue.ID)
		case content.OpPutDelivery, content.OpPutNote, content.OpDeleteDelivery:
			copyDelivery(b, &op)
		default:
			copyItem(b, &op)
		}
	}
	b.SetMarks(s.marks)
	if s.must {
		b.MustWrite()
	}
	return b, nil
}

// without leaves out the operations of a kind.
func without(kind content.OpKind) func([]content.Op) []content.Op {
	return func(ops []content.Op) []content.Op {
		return slices.DeleteFunc(ops, func(op content.Op) bool { return op.Kind == kind })
	}
}

// late is the delay of a faulty commit: the time in which a kill shows the fault.
const late = 10 * time.Millisecond

// ackBeforeCommit reports a batch as durable and writes it with the next one, or before a read.
func ackBeforeCommit(s *store) {
	var delayed *content.Batch
	s.settle = func() error {
		b := delayed
		if delayed = nil; b == nil {
			return nil
		}
		return s.Store.Apply(b)
	}
	s.apply = func(b *content.Batch) error {
		c, err := s.copy(s.ops(b))
		if err == nil {
			err = s.settle()
			delayed = c
		}
		return err
	}
}

// lastRecordDropped leaves out the last packet operation of every eighth batch. The control record
// would show that at the next start, too. So its check is off here and in other faults, and the
// model must find them.
func lastRecordDropped(s *store) {
	s.unchecked = true
	n := 0
	s.edit = func(ops []content.Op) []content.Op {
		n++
		for i := len(ops) - 1; i >= 0 && n%8 == 0; i-- {
			if ops[i].Kind == content.OpPut || ops[i].Kind == content.OpDelete {
				return slices.Delete(ops, i, i+1)
			}
		}
		return ops
	}
}

// batchTorn writes a batch in two transactions, every second operation a little later.
func batchTorn(s *store) {
	s.apply = func(b *content.Batch) error {
		var parts [2][]content.Op
		for i, op := range s.ops(b) {
			parts[i%2] = append(parts[i%2], op)
		}
		for i, part := range parts {
			if err := s.write(part); err != nil {
				return err
			}
			if i == 0 {
				time.Sleep(late)
			}
		}
		return nil
	}
}

// batchesReordered writes every second batch before its predecessor.
func batchesReordered(s *store) {
	s.unchecked = true
	var delayed *content.Batch
	s.settle = func() error {
		b := delayed
		if delayed = nil; b == nil {
			return nil
		}
		return s.Store.Apply(b)
	}
	s.apply = func(b *content.Batch) error {
		c, err := s.copy(s.ops(b))
		if err != nil {
			return err
		}
		if delayed == nil {
			delayed = c
			return nil
		}
		if err := s.Store.Apply(c); err != nil {
			return err
		}
		return s.settle()
	}
}

func batchAppliedTwice(s *store) {
	s.apply = func(b *content.Batch) error {
		if err := s.rebuilt(b); err != nil {
			return err
		}
		return s.rebuilt(b)
	}
}

// sequenceReused starts each time with the sequences of some thousand packets ago.
func sequenceReused(s *store) {
	s.control = func(c *content.Control) { c.NextSeq -= min(c.NextSeq-1<<63, 5000) }
}

func forgetExpiry(m *content.Meta) bool {
	m.Expiry = 0
	return true
}

func forgetKey(m *content.Meta) bool {
	m.Key = nil
	return true
}

func uniqueForgotten(s *store) {
	s.unchecked = true
	s.edit = without(content.OpPutUnique)
}

// forgetSize halves what a packet counts for.
func forgetSize(m *content.Meta) bool {
	m.Size /= 2
	return true
}

func forgetTags(m *content.Meta) bool {
	m.Tags = nil
	return true
}

// tagsOfAnother gives a packet the tags of the one before it.
func tagsOfAnother(s *store) {
	var last []content.Tag
	s.meta = func(m *content.Meta) bool {
		m.Tags, last = last, slices.Clone(m.Tags)
		return true
	}
}

// skipSome hides one packet in two hundred.
func skipSome() func(*content.Meta) bool {
	n := 0
	return func(*content.Meta) bool {
		n++
		return n%200 != 0
	}
}

// keys knows what the packets that were put are told apart by: the queue and the key, or the
// beginning of a payload without a key.
type keys map[content.PacketID]string

// payloadStart is enough of a payload of the load to tell it from any other.
const payloadStart = 12

// of returns that of a packet that is put or deleted, "" if it is not known.
func (k keys) of(op content.Op) string {
	key := k[op.ID]
	switch op.Kind {
	case content.OpDelete:
		delete(k, op.ID)
	case content.OpPut:
		var p content.Packet
		if err := content.DecodeRecord(op.Record, &p); err != nil {
			panic(err) // the broker has just encoded it
		}
		if key = fmt.Sprint(op.ID.Queue, p.Key); p.Key == nil {
			key = string(p.Payload[:min(len(p.Payload), payloadStart)])
		}
		k[op.ID] = key
	}
	return key
}

// firstPutDropped leaves out one in 128 packets whose key no packet was deleted for in the same
// batch. On a board that is the update that makes an item. The item's next update writes it again.
func firstPutDropped(s *store) {
	s.unchecked = true
	known, n := keys{}, 0
	s.edit = func(ops []content.Op) []content.Op {
		deleted := map[string]bool{}
		return slices.DeleteFunc(ops, func(op content.Op) bool {
			key := known.of(op)
			if op.Kind == content.OpDelete {
				deleted[key] = true
			}
			if op.Kind != content.OpPut || deleted[key] {
				return false
			}
			n++
			return n%128 == 0
		})
	}
}

// halfMove leaves out one half of every second move. A move deletes a packet and puts it again, in
// the same batch and with the same key or payload, at another place.
func halfMove(s *store, half content.OpKind) {
	s.unchecked = true
	known, n := keys{}, 0
	s.edit = func(ops []content.Op) []content.Op {
		deletes := map[string]int{} // by key: place in ops
		left := map[int]bool{}
		for i, op := range ops {
			key := known.of(op)
			if op.Kind == content.OpDelete && key != "" {
				deletes[key] = i
			}
			at, moved := deletes[key]
			if op.Kind != content.OpPut || !moved {
				continue
			}
			if n++; n%2 == 0 && half == content.OpPut {
				left[i] = true
			} else if n%2 == 0 {
				left[at] = true
			}
		}
		var rest []content.Op
		for i, op := range ops {
			if !left[i] {
				rest = append(rest, op)
			}
		}
		return rest
	}
}
