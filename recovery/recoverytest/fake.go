// Package recoverytest holds what the tests of the packages below recovery share: packets of every
// shape, and folders that hold them.
package recoverytest

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Later is the time in these tests: so far off that no database drops what expires around it.
const Later = 4_000_000_000_000

// Fake is a snapshot of what a test wrote down. Records come in the order of the list.
type Fake struct {
	Keys
	Tries
	Counted content.Control
	Defined []content.Queue
	Stored  []Packet
	Broken  error // of Walk, after the last packet
}

// Packet is a stored packet, or what is left of one.
type Packet struct {
	ID     content.PacketID
	Packet content.Packet
	Damage error
	Rec    []byte // in place of the record of Packet
}

// Control returns what the test wrote down.
func (s *Fake) Control() content.Control { return s.Counted }

// Walk shows what the test wrote down.
func (s *Fake) Walk(v storage.Visitor) error {
	return Scans{
		Queues: s.Queues, Shares: s.Shares, Uniques: s.Uniques, Items: s.Items, States: s.Deliveries,
		Packets: func(fn func(content.PacketID, *content.Meta, []byte, error) error) error {
			return s.records(v.Range, fn)
		},
	}.Walk(v, s.Counted)
}

// Queues calls fn for Defined.
func (s *Fake) Queues(fn func(content.Queue) error) error {
	return each(s.Defined, func(q *content.Queue) error { return fn(*q) })
}

// records hands the same bytes out again and again, as the store does.
func (s *Fake) records(r storage.QueueRange, fn func(content.PacketID, *content.Meta, []byte, error) error) error {
	var buf []byte
	for _, p := range s.Stored {
		if p.ID.Queue < r.First || r.Last != 0 && p.ID.Queue > r.Last {
			continue
		}
		m, rec := (*content.Meta)(nil), []byte(nil)
		if p.Damage == nil {
			buf = content.AppendRecord(buf[:0], &p.Packet)
			if p.Rec != nil {
				buf = append(buf[:0], p.Rec...)
			} else {
				m = &content.Meta{Expiry: p.Packet.Expiry}
			}
			rec = buf
		}
		if err := fn(p.ID, m, rec, p.Damage); err != nil {
			return err
		}
		clear(buf)
	}
	return s.Broken
}

// Count makes the control record that of what is there now.
func (s *Fake) Count() {
	s.Counted.Epoch, s.Counted.Batch, s.Counted.Tally = 1, 1, content.Tally{}
	for _, p := range s.Stored {
		s.Counted.Add(p.ID, p.Packet.Expiry)
	}
	s.Keys.Tally(&s.Counted.Tally)
	s.Tries.Tally(&s.Counted.Tally)
}

// Put adds a packet behind the others.
func (s *Fake) Put(queue, priority uint32, seq uint64, p content.Packet) {
	s.Stored = append(s.Stored, Packet{ID: content.PacketID{Queue: queue, Priority: priority, Seq: seq}, Packet: p})
}

// OneOfEach has one packet of each shape.
func OneOfEach() *Fake {
	s := &Fake{
		Counted: content.Control{Tally: content.Tally{Live: 10}, Marks: content.Marks{NextSeq: 1<<63 + 100, LowSeq: 1<<63 - 1, NextQueue: 10, LastKey: 10}},
		Defined: []content.Queue{
			{
				ID: 1, Name: []byte("jobs"), Counters: content.Counters{Pushed: 9, Popped: 8, Acked: 7, Nacked: 6, Expired: 5, Dead: 4},
				Settings: &content.Settings{MaxAttempts: 5, Lease: 30_000, BackoffMin: 1000, BackoffMax: 600_000, DeadLetter: []byte{0xff, 0}, Retain: 1},
			},
			{ID: 2, Name: []byte("empty \"\n"), Expiry: Later + 5},
			{ID: 5, Name: []byte{0xff, 0}, Rest: content.Rest{Bytes: "\x16\xc3\x17\xa1x", Fields: 2}},
			{ID: 6, Name: []byte{}, Settings: &content.Settings{}},
			{ID: 7, Name: []byte("jobs"), Dropped: true},
			{
				ID: 8, Name: []byte("bounded"), Counters: content.Counters{Dropped: 1 << 63},
				Settings: &content.Settings{
					MaxAttempts: 5, Lease: 30_000, Bound: 1000, BoundBytes: 1 << 53, Full: content.FullDrop,
					ExclusiveProducer: true, ExclusiveConsumer: true, PauseIn: true, PauseOut: true, Closed: true,
					Orders: []content.Order{{Tag: "class", Values: []string{"low", "\"high\""}}, {Tag: "size", Values: []string{"s"}}},
				},
			},
			{ID: 9, Database: 15, Name: []byte("ordered"), Settings: &content.Settings{Full: content.FullBlock, RetainDead: 7, Orders: []content.Order{{Tag: "class", Values: []string{"low", "\xff"}}}}},
		},
	}
	const base = 1 << 63
	s.Put(1, 0, base+7, content.Packet{Key: []byte("k")})
	s.Put(1, 1, base, content.Packet{})
	s.Put(1, 1, base+1, content.Packet{Key: []byte{}, Payload: []byte("text, \"quoted\" \\ and\r\n\tmore é 😀 \ufffd")})
	s.Put(1, 2, base+2, content.Packet{Key: []byte{0xfe}, Payload: []byte{0, 1, 0xff}, Expiry: Later + 7})
	s.Put(1, 2, base+3, content.Packet{Payload: []byte("bell \a"), NotBefore: Later + 1, Expiry: Later + 2, EnqueuedAt: Later - 1})
	s.Put(1, 1<<32-1, base+4, content.Packet{
		Attempts: 3, Producer: "worker-1", NotBefore: -5, Unique: []byte("order, 17"),
		Tags: []content.Tag{{Name: "a", Value: "b\""}, {Name: "c", Value: ""}},
	})
	s.Put(5, 3, base+5, content.Packet{Tags: []content.Tag{{Name: "a", Value: "\xff"}, {Name: "a", Value: ""}}, Producer: "\xfd", Identity: base + 20, Unique: []byte{0xfc}})
	s.Put(5, 3, base+6, content.Packet{Expiry: Later, Payload: []byte("expired")})
	s.Put(6, 9, base+8, content.Packet{Payload: bytes.Repeat([]byte("long "), 206), Expiry: Later + 1})
	s.Put(7, 9, base+9, content.Packet{Payload: []byte("dropped")})
	s.putDeliveries(base)
	s.putKeys()
	return s
}

// putDeliveries adds a delivery state of each shape, in the order of the identities.
func (s *Fake) putDeliveries(base uint64) {
	s.Try(content.Delivery{
		Identity: base, State: content.Claimed, Until: Later + 9, Attempts: 1, Token: base + 30, FirstClaim: Later - 3, LastClaim: Later - 3, Consumer: "w\"",
	}).Progress = "\x28half"
	s.Try(content.Delivery{
		Identity: base + 1, State: content.Dead, Until: Later - 1, Attempts: 5, Token: base + 31, FirstClaim: Later - 9, LastClaim: Later - 1, Consumer: "\xfb",
	}).Reason = "the disk \a is full"
	s.Try(content.Delivery{Identity: base + 2, State: content.Done, Attempts: 1, Token: base + 32, Expiry: Later + 7})
	s.Try(content.Delivery{Identity: base + 3, Until: Later + 2, Attempts: 2, Token: base + 33, Expiry: Later + 2}).Progress = "\x00"
	s.Try(content.Delivery{Identity: base + 6, State: content.Claimed, Until: Later, Attempts: 1, Token: base + 34, Expiry: Later}) // both have ended
	s.Try(content.Delivery{Identity: base + 8, Origin: 5, Expiry: Later + 1}).Reason = "\xfa"
	s.Try(content.Delivery{Identity: base + 20, Origin: 6, Attempts: 1 << 20, Token: base + 35})
}

// putKeys adds a string and a hash of each shape, ids of unique pushes, and what nobody can reach.
func (s *Fake) putKeys() {
	var b content.Batch
	head := func(id uint64, kind content.Kind, name string, expiry int64, value []byte) {
		b.PutHead(&content.Head{ID: id, Kind: kind, Name: []byte(name), Version: id, Expiry: expiry, Value: value}, content.Mark{})
	}
	field := func(hash, id uint64, name string, value []byte) {
		b.PutField(&content.Field{Hash: hash, ID: id, Name: []byte(name), Version: id, Value: value}, content.Mark{})
	}
	head(1, content.String, "text \"", Later+1, []byte("a\tb é"))
	head(2, content.String, "\xff", 0, []byte{0, 0xff})
	b.PutHead(&content.Head{ID: 3, Database: 3, Kind: content.String, Name: []byte("none"), Version: 3, Value: []byte{}}, content.Mark{})
	head(4, content.String, "long", 0, bytes.Repeat([]byte("long "), 206))
	head(5, content.Hash, "hash", Later+2, []byte{})
	field(5, 6, "small", []byte("bell \a"))
	field(5, 7, "\xfe", bytes.Repeat([]byte("long "), 207))
	field(5, 8, "", []byte{})
	head(9, content.String, "expired", Later, []byte("expired"))
	field(9, 10, "left over", []byte("x"))
	for _, p := range s.Stored {
		if len(p.Packet.Unique) > 0 {
			b.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: p.ID.Queue, Identity: cmp.Or(p.Packet.Identity, p.ID.Seq)}, ID: p.Packet.Unique, UntilClaim: p.Packet.UntilClaim})
		}
	}
	const base = 1 << 63
	b.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: 2, Identity: base + 40}, ID: []byte("window \""), Until: Later + 1})
	b.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: 2, Identity: base + 41}, ID: []byte{0xf9}, Until: Later + 1<<40})
	b.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: 2, Identity: base + 42}, ID: []byte("over"), Until: Later})
	b.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: 7, Identity: base + 43}, ID: []byte("dropped"), Until: Later + 1})
	s.Keys.Apply(&b)
}

// Many has n packets in seven queues, three priorities in each.
func Many(n int) *Fake {
	s := &Fake{Counted: content.Control{Marks: content.Marks{NextSeq: 1<<63 + uint64(n), LowSeq: 1<<63 - 1, NextQueue: 8}}}
	for q := range uint32(7) {
		s.Defined = append(s.Defined, content.Queue{ID: q + 1, Name: fmt.Append(nil, "queue ", q+1)})
	}
	for i := range n {
		s.Put(uint32(1+i*7/n), uint32(1+i*21/n), 1<<63+uint64(i), content.Packet{Key: fmt.Append(nil, i), Payload: fmt.Append(nil, "payload ", i)})
	}
	return s
}
