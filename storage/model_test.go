package storage

import (
	"bytes"
	"errors"
	"fmt"
	"maps"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/storage/content"
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

// keptSnapshot is a snapshot with what it must show for ever.
type keptSnapshot struct {
	*Snapshot
	want map[string]rawEntry
	as   content.Control
	gone uint64 // what has expired by this second need not be there
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
