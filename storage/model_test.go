package storage

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/journal"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// model is what a store should hold, in maps.
type model struct {
	packets  map[content.PacketID]content.Packet
	states   map[uint64]content.Delivery // by the identity of their packets
	items    items
	queues   map[uint32]string
	counters map[uint32]content.Counters
	uniques  map[content.UniqueID]content.Unique
	shares   map[content.ShareID]content.Share
	flush    content.Flush
	marks    content.Marks
	batches  uint64
	epoch    uint64 // starts so far
	stored   uint64 // epoch of the last batch
	numbers  uint64 // identities and versions that were given
	time     int64  // of the last batch, as the store says
}

func newModel() *model {
	return &model{
		packets: map[content.PacketID]content.Packet{}, states: map[uint64]content.Delivery{}, items: items{}, queues: map[uint32]string{},
		counters: map[uint32]content.Counters{}, uniques: map[content.UniqueID]content.Unique{}, shares: map[content.ShareID]content.Share{}, marks: content.FirstMarks(),
	}
}

// rawEntry is a value in the database and its native expiry.
type rawEntry struct {
	value   string
	expires uint64
}

// raw is every key of the database but the control record, as FORMAT.md says it.
func (m *model) raw() map[string]rawEntry {
	all := map[string]rawEntry{}
	put := func(key, value []byte, expires uint64) { all[string(key)] = rawEntry{string(value), expires} }
	for id, p := range m.packets {
		if expires := content.NativeExpiry(p.Expiry); content.IsLarge(len(p.Payload)) {
			put(content.AppendPacketKey(nil, id), appendHead(nil, &p), expires)
			put(content.AppendPayloadKey(nil, id), p.Payload, expires)
		} else {
			put(content.AppendPacketKey(nil, id), content.AppendRecord(nil, &p), expires)
		}
	}
	for _, d := range m.states {
		for kind, rec := range [][]byte{content.AppendDelivery(nil, &d), []byte(d.Reason), []byte(d.Progress)} {
			if len(rec) > 0 {
				put(content.AppendStateKey(nil, content.NoteID{Identity: d.Identity, Kind: content.NoteKind(kind)}), rec, 0)
			}
		}
	}
	for v, i := range m.items {
		if i.Large = content.IsLarge(len(i.Value)); i.Large {
			put(content.AppendValueKey(nil, v), i.Value, 0)
			i.Size = uint64(len(i.Value))
		}
		put(content.AppendItemKey(nil, v), content.AppendItem(nil, &i), 0)
	}
	for id, name := range m.queues {
		put(content.AppendQueueKey(nil, id), content.AppendQueue(nil, &content.Queue{Name: []byte(name)}), 0)
	}
	for id, c := range m.counters {
		put(append(content.AppendQueueKey(nil, id), content.CountersKey), content.AppendCounters(nil, &c), 0)
	}
	for id, u := range m.uniques {
		put(content.AppendUniqueKey(nil, id), content.AppendUnique(nil, &u), 0)
	}
	for id, s := range m.shares {
		put(content.AppendShareKey(nil, id), content.AppendShare(nil, &s), 0)
	}
	if m.flush != (content.Flush{}) {
		put([]byte(content.FlushKey), content.AppendFlush(nil, m.flush), 0)
	}
	return all
}

// control is the control record of the last batch.
func (m *model) control() content.Control {
	c := content.Control{Epoch: m.stored, Batch: m.batches, Time: m.time, Marks: m.marks}
	for id, p := range m.packets {
		c.Add(id, p.Expiry)
	}
	for v, i := range m.items {
		c.AddItem(v, i.Version)
	}
	for id := range m.uniques {
		c.AddUnique(id)
	}
	for identity := range m.states {
		c.AddDelivery(identity)
	}
	return c
}

// stateOf says which records of a delivery state there are.
func (m *model) stateOf(identity uint64) (s content.Stored) {
	if d, ok := m.states[identity]; ok {
		s = content.StoredDelivery
		if d.Reason != "" {
			s |= content.StoredReason
		}
		if d.Progress != "" {
			s |= content.StoredProgress
		}
	}
	return s
}

// drawer draws the calls of one batch and carries them out on the model.
type drawer struct {
	choose func(what string, from, to int) int
	*model
	sizes    []int   // of payloads and values
	expiries []int64 // of packets
	b        content.Batch
	put      map[content.PacketID]int // packets that this batch put
}

// drawn draws a batch by rapid.
func drawn(t *rapid.T, m *model) *drawer {
	d := &drawer{model: m, put: map[content.PacketID]int{}, sizes: []int{0, 10, 1024, 1025, 9000, 200_000}}
	d.choose = func(what string, from, to int) int { return rapid.IntRange(from, to).Draw(t, what) }
	d.expiries = []int64{0, 0, 1_600_000_000_000, 4_000_000_000_000} // of the third the native expiry has passed
	d.draw()
	return d
}

func (d *drawer) yes(what string) bool { return d.choose(what, 0, 1) == 1 }

func pick[T any](d *drawer, what string, all []T) T { return all[d.choose(what, 0, len(all)-1)] }

func (d *drawer) number() uint64 { d.numbers++; return d.numbers }

func (d *drawer) bytes() []byte {
	size := pick(d, "size", d.sizes)
	return bytes.Repeat([]byte{byte(d.number())}, size)
}

func (d *drawer) packet() content.Packet {
	p := content.Packet{Identity: d.number(), Payload: d.bytes()}
	p.Expiry = pick(d, "expiry", d.expiries)
	return p
}

func (d *drawer) packetCall() {
	queue, seq := uint32(d.choose("queue", 1, 2)), 1<<63-6+uint64(d.choose("seq", 0, 11))
	id, there := content.PacketID{Queue: queue, Seq: seq}, false
	for priority := range uint32(3) { // a packet has a sequence of its own, whatever its priority
		if id.Priority = priority; !there {
			_, there = d.packets[id]
		}
		if there {
			break
		}
	}
	if !there {
		id.Priority = uint32(d.choose("priority", 0, 2))
		p := d.packet()
		d.put[id], d.packets[id] = d.b.Put(id, &p), p
		return
	}
	p := d.packets[id]
	op, here := d.put[id]
	gone := content.Removed{Expires: p.Expiry != 0, Large: content.IsLarge(len(p.Payload))}
	forget := func() {
		if here {
			d.b.Cancel(op)
		} else {
			d.b.Delete(id, gone)
		}
		delete(d.put, id)
		delete(d.packets, id)
	}
	switch d.choose("call", 0, 7) {
	case 0, 1: // it goes, and its delivery state with it
		if gone.Stored, gone.Identity = d.stateOf(p.Identity), p.Identity; here && gone.Stored != 0 {
			d.b.DeleteDelivery(p.Identity, gone.Stored)
		}
		delete(d.states, p.Identity)
		forget()
	case 2: // it moves
		forget()
		id.Priority = (id.Priority + 1) % 3
		d.put[id], d.packets[id] = d.b.Put(id, &p), p
	case 3: // it begins anew
		if here {
			return
		}
		gone.Stored, gone.Identity = d.stateOf(p.Identity), p.Identity
		delete(d.states, p.Identity)
		p = d.packet()
		d.put[id], d.packets[id] = d.b.Replace(id, &p, gone), p
	case 4, 5:
		before := d.stateOf(p.Identity)
		was := d.states[p.Identity]
		s := content.Delivery{Identity: p.Identity, State: content.Claimed, Token: d.number(), Reason: was.Reason, Progress: was.Progress}
		d.b.PutDelivery(&s, before)
		d.states[p.Identity] = s
	default:
		s, ok := d.states[p.Identity]
		if !ok {
			return
		}
		text := pick(d, "text", []string{"", "a", "some text"})
		kind := pick(d, "kind", []content.NoteKind{content.NoteReason, content.NoteProgress})
		d.b.PutNote(content.NoteID{Identity: p.Identity, Kind: kind}, []byte(text), d.stateOf(p.Identity))
		if kind == content.NoteReason {
			s.Reason = text
		} else {
			s.Progress = text
		}
		d.states[p.Identity] = s
	}
}

func (d *drawer) itemID() content.ValueID {
	v := content.ValueID{ID: uint64(d.choose("id", 1, 3))}
	if v.IsField = d.yes("field"); v.IsField {
		v.Field = uint64(d.choose("field", 1, 2))
	}
	return v
}

func (d *drawer) itemCall() {
	v := d.itemID()
	was, old := d.items[v], d.items.mark(v)
	if _, there := d.items[v]; there && d.yes("remove") {
		remove(&d.b, v, old)
		delete(d.items, v)
		return
	}
	i := content.Item{Kind: content.String, Name: []byte("name"), Version: d.number(), Value: d.bytes()}
	if v.IsField {
		i.Kind = 0
	}
	if keep := content.IsLarge(len(was.Value)) && d.yes("keep"); keep {
		i.Value = nil
		put(&d.b, v, i, len(was.Value), true, old)
		i.Value = was.Value
	} else {
		put(&d.b, v, i, 0, false, old)
	}
	d.items[v] = i
}

func (d *drawer) queueCall() {
	id := uint32(d.choose("queue", 1, 3))
	_, there := d.queues[id]
	switch c := (content.Counters{Pushed: d.number()}); {
	case !there:
		d.queues[id] = fmt.Sprint("queue ", d.number())
		d.b.PutQueue(content.Queue{ID: id, Name: []byte(d.queues[id])})
	case d.yes("count"):
		d.b.PutCounters(id, c)
		d.counters[id] = c
	default:
		d.b.DeleteQueue(id)
		delete(d.queues, id)
		delete(d.counters, id)
	}
}

func (d *drawer) otherCall() {
	switch d.choose("other", 0, 3) {
	case 1:
		id := content.ShareID{Queue: uint32(d.choose("queue", 1, 2)), Number: uint64(d.choose("share", 1, 3))}
		s, there := d.shares[id]
		if there && d.yes("reset") {
			d.b.DeleteShare(id)
			delete(d.shares, id)
			return
		}
		s.HeldUntil = pick(d, "rest", []int64{0, 0, 1_900_000_000_000})
		s.ShareID, s.Name, s.Weight = id, fmt.Append(nil, d.number()), uint32(d.choose("weight", 0, 1000))
		s.MaxClaimed = uint32(d.choose("limit", 0, 2))
		d.shares[id] = s
		d.b.PutShare(&s, !there)
	case 0:
		d.flush = content.Flush{{Keys: uint64(d.choose("keys", 0, 1))}}
		d.b.SetFlush(d.flush)
	default:
		id := content.UniqueID{Queue: uint32(d.choose("queue", 1, 2)), Identity: uint64(d.choose("identity", 1, 3))}
		if _, there := d.uniques[id]; there {
			d.b.DeleteUnique(id)
			delete(d.uniques, id)
		} else {
			d.uniques[id] = content.Unique{UniqueID: id, ID: fmt.Append(nil, d.number()), Until: 0}
			u := d.uniques[id]
			d.b.PutUnique(&u)
		}
	}
}

// draw draws one batch.
func (d *drawer) draw() {
	for range d.choose("calls", 1, 12) {
		switch d.choose("kind", 0, 9) {
		case 0, 1, 2, 3, 4, 5:
			d.packetCall()
		case 6, 7:
			d.itemCall()
		case 8:
			d.queueCall()
		case 9:
			d.otherCall()
		}
	}
	if d.b.Len() > 0 {
		d.batches++
		d.model.stored = d.epoch
		d.marks = content.Marks{NextSeq: 1<<63 + d.batches, LowSeq: 1<<63 - d.batches, NextQueue: uint32(d.batches)}
		d.b.SetMarks(d.marks)
	}
}

// machine is a store beside its model.
type machine struct {
	*model
	t      *testing.T
	s      *Store
	o      Options
	dir    string
	held   bool // nothing becomes tables
	kept   []*keptSnapshot
	copied *keptFiles      // nil if none were taken
	seen   map[string]bool // every key that ever was
}

// keptSnapshot is a snapshot with what it must show for ever.
type keptSnapshot struct {
	*Snapshot
	want map[string]rawEntry
	as   content.Control
	gone uint64 // what has expired by this second need not be there
}

func (c *machine) fail(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *machine) apply(t *rapid.T) {
	d := drawn(t, c.model)
	checkTotals(t, &d.b)
	_, _, frozen := c.s.layers.waiting()
	if behind, _ := c.s.lookBehind(); frozen >= maxFrozen || behind > 1 {
		c.release() // or the batch would wait for ever
	}
	c.fail(t, c.s.Apply(&d.b))
	c.clock(t)
}

// clock takes the time of the last batch, which never runs back.
func (c *machine) clock(t *rapid.T) {
	t.Helper()
	at := c.s.Control().Time
	if at < c.time {
		t.Fatalf("the time of batches ran back from %d to %d", c.time, at)
	}
	c.time = at
}

func (c *machine) hold() {
	if !c.held {
		c.s.flushing.Lock()
		c.held = true
	}
}

func (c *machine) release() {
	if c.held {
		c.s.flushing.Unlock()
		c.held = false
	}
}

func (c *machine) merge(t *rapid.T) {
	c.release()
	o := tables.MergeOptions{All: rapid.Bool().Draw(t, "all"), Size: 1 << 16}
	_, err := c.s.tables.Merge(t.Context(), o)
	c.fail(t, err)
}

// snapshot takes one, and lets go of one that was kept.
func (c *machine) snapshot(t *rapid.T) {
	c.release()
	n, err := c.s.Snapshot()
	c.fail(t, err)
	k := &keptSnapshot{n, c.raw(), c.control(), 0}
	k.check(t)
	if c.kept = append(c.kept, k); len(c.kept) > 2 {
		c.kept[0].check(t)
		c.kept[0].Close()
		c.kept = c.kept[1:]
	}
}

// raw is every key that a snapshot shows but the control record.
func (n *Snapshot) raw(t rapid.TB) map[string]rawEntry {
	t.Helper()
	all := map[string]rawEntry{}
	it := n.view.Iterator(nil)
	defer it.Close()
	for it.Seek(nil); it.Valid(); it.Next() {
		if e := it.Entry(); string(e.Key) != content.ControlKey {
			all[string(e.Key)] = rawEntry{string(e.Value), e.Expires}
		}
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// check holds what a snapshot shows against what it must show: each key of it once, and as typed
// records those that its control record counts.
func (k *keptSnapshot) check(t rapid.TB) {
	t.Helper()
	got := k.raw(t)
	for _, all := range []map[string]rawEntry{got, k.want} {
		maps.DeleteFunc(all, func(_ string, e rawEntry) bool { return e.expires > 0 && e.expires <= k.gone })
	}
	if !maps.Equal(got, k.want) {
		t.Fatalf("a snapshot gives %s", differing(got, k.want))
	}
	err := errors.Join(
		k.Packets(func(content.PacketID, *content.Meta) error { return nil }),
		k.Records(QueueRange{}, func(_ content.PacketID, _ []byte, damage error) error { return damage }),
		k.Items(func(_ content.ValueID, _ *content.Head, _ *content.Field, damage error) error { return damage }),
		k.Deliveries(func(_ *content.Delivery, damage error) error { return damage }))
	has := k.Control()
	has.Hides = 0 // an estimate
	if err != nil || has != k.as {
		t.Fatalf("a snapshot of %+v, want %+v: %v", has, k.as, err)
	}
}

func differing(got, want map[string]rawEntry) (what []string) {
	for key := range want {
		if g, ok := got[key]; !ok || g != want[key] {
			what = append(what, fmt.Sprintf("%s: there is %v, %.20q until %d, want %.20q until %d",
				content.DescribeKey([]byte(key)), ok, g.value, g.expires, want[key].value, want[key].expires))
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			what = append(what, content.DescribeKey([]byte(key))+" should not be there")
		}
	}
	return what
}

// open opens the folder. A store that is open has everything in tables, and an empty journal.
func (c *machine) open(t *rapid.T) {
	var err error
	c.s, err = Open(c.dir, c.o)
	c.fail(t, err)
	c.fail(t, c.s.Verify(c.s.Control().Tally)) // it begins; check compares the tally
	c.epoch++
	if floor := c.s.tables.List().Floor; floor.Batch != c.batches {
		t.Fatalf("after a start tables have batch %d of %d", floor.Batch, c.batches)
	}
	j, err := journal.Open(filepath.Join(c.dir, journalName), journal.Options{})
	c.fail(t, err)
	_, err = j.Replay(journal.ReplayOptions{}, func(r journal.Record) error { return fmt.Errorf("batch %d is in the journal", r.Batch) })
	c.fail(t, errors.Join(err, j.Close()))
}

func (c *machine) close(t *rapid.T) {
	c.release()
	for _, k := range c.kept {
		k.check(t)
		k.Close()
	}
	c.kept = nil
	c.checkFiles(t)
	c.fail(t, c.s.Close())
}

// reopen closes the store, whose tables are then a database of Badger with all that there is.
func (c *machine) reopen(t *rapid.T) {
	c.close(t)
	db := filepath.Join(c.t.TempDir(), dbName)
	c.fail(t, copied(filepath.Join(c.dir, dbName), db))
	b, err := badger.Open(badger.DefaultOptions(db).WithLogger(nil).WithMemTableSize(1 << 20).WithValueThreshold(1 << 10))
	c.fail(t, err)
	got := map[string]rawEntry{}
	c.fail(t, errors.Join(b.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			value, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			if key := string(it.Item().Key()); key != content.ControlKey {
				got[key] = rawEntry{string(value), it.Item().ExpiresAt()}
			}
		}
		return nil
	}), b.Close(), os.RemoveAll(db)))
	want, now := c.raw(), uint64(time.Now().Unix())
	maps.DeleteFunc(want, func(_ string, e rawEntry) bool { return e.expires != 0 && e.expires <= now }) // by Badger's own rule
	if !maps.Equal(got, want) {
		t.Fatalf("Badger shows others: %s", differing(got, want))
	}
	c.open(t)
}

// kill goes on with what a kill would have left, and looks at that before.
func (c *machine) kill(t *rapid.T) {
	c.hold()
	dir := copiedAtOnce(c.t, c.s)
	c.close(t)
	c.fail(t, os.RemoveAll(c.dir))
	c.dir = dir
	before := state(c.t, dir)
	v, err := OpenView(dir, ViewOptions{})
	c.fail(t, err)
	k := &keptSnapshot{v.Snapshot, c.raw(), c.control(), 0}
	k.check(t)
	if c.fail(t, v.Close()); !equalMaps(before, state(c.t, dir)) {
		t.Fatal("looking changed the folder")
	}
	c.open(t)
}

// check reads every key that ever was, by itself, and packets as callers do: only those that are
// there.
func (c *machine) check(t *rapid.T) {
	want := c.raw()
	for key := range want {
		c.seen[key] = true
	}
	state := c.s.readState()
	defer c.s.endRead(state)
	got := map[string]rawEntry{}
	for key := range c.seen {
		if _, there := want[key]; !there && key[:2] == content.PacketPrefix {
			continue
		}
		value, ok, err := state.get([]byte(key), false)
		c.fail(t, err)
		if ok {
			got[key] = rawEntry{string(value), want[key].expires}
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("reads give others: %s", differing(got, want))
	}
	c.clock(t)
	if c.s.Control() != c.control() || c.s.epoch != c.epoch || c.s.Flush() != c.flush {
		t.Fatalf("control record %+v in epoch %d, want %+v in %d", c.s.Control(), c.s.epoch, c.control(), c.epoch)
	}
	var ids []content.PacketID // every second place, or a run of all
	for i := 24; i > 0; i -= rapid.IntRange(1, 2).Draw(t, "step") {
		for priority := range uint32(3) {
			ids = append(ids, content.PacketID{Queue: 1 + uint32(i%2), Priority: priority, Seq: 1<<63 - 6 + uint64(i/2)})
		}
	}
	calls := 0
	c.s.Read(ids, func(i int, rec []byte, damage error) {
		calls++
		p, there := c.packets[ids[i]]
		if !there && c.seen[string(content.AppendPacketKey(nil, ids[i]))] {
			return
		}
		var r content.Packet
		if there != (damage == nil) || there && (content.DecodeRecord(rec, &r) != nil || !same(r, p)) {
			t.Fatalf("packet %v is there: %v, want %v, or it is another", ids[i], damage, there)
		}
	})
	if calls != len(ids) {
		t.Fatalf("%d calls for %d packets", calls, len(ids))
	}
}

// TestStoreDoesWhatTheModelDoes makes some hundreds of steps. With -rapid.checks=350 it makes more
// than 10,000.
func TestStoreDoesWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	checks := flag.Lookup("rapid.checks")
	few, runs := checks.Value.String() == checks.DefValue, 0
	rapid.Check(t, func(r *rapid.T) {
		if runs++; few && runs > 20 {
			return
		}
		c := &machine{t: t, dir: t.TempDir(), seen: map[string]bool{}, model: newModel()}
		c.o = Options{Window: rapid.SampledFrom([]int64{4 << 10, 64 << 10, 1 << 20}).Draw(r, "window")}
		c.o.Sync = rapid.SampledFrom([]SyncMode{SyncAlways(), SyncNever(), SyncInterval(time.Millisecond)}).Draw(r, "sync")
		c.open(r)
		defer func() {
			c.release()
			for _, k := range c.kept {
				k.Close()
			}
			if c.copied != nil {
				c.copied.Close()
			}
			_ = c.s.Close()
			_ = os.RemoveAll(c.dir)
		}()
		r.Repeat(map[string]func(*rapid.T){
			"apply": c.apply, "apply again": c.apply, "apply more": c.apply, "apply still more": c.apply,
			"hold": func(*rapid.T) { c.hold() }, "release": func(*rapid.T) { c.release() },
			"flush":    func(t *rapid.T) { c.release(); c.fail(t, c.s.settle()) },
			"merge":    c.merge,
			"snapshot": c.snapshot,
			"files":    c.files,
			"reopen":   c.reopen,
			"kill":     c.kill,
			"":         c.check,
		})
	})
}
