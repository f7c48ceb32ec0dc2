package content

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Batch holds what one Apply writes: all of it or nothing. One goroutine fills it; Apply only reads
// it. After Reset it is empty and uses its memory again.
//
// It is a list of entries, each encoded as the journal has it when the call is made. Of a key that
// is no packet's the last call counts, and what the first one says of the store.
//
// Invariants:
//  1. The bytes of entries and records lie in chunks that are not written again before Reset.
//  2. count, bytes and tally are those of the entries that are written.
//  3. Apply carries the operations of one packet out in the order of the calls.
type Batch struct {
	entries []batchEntry
	at      map[FixedKey]int32 // where in entries, of keys that are no packet's
	chunks  [][]byte           // the last one is being filled
	spare   [][]byte           // kept by Reset for later chunks
	scratch []byte             // of the record that is made
	memory  int                // bytes of all chunks

	count    int
	bytes    int
	tally    Tally // the difference that the batch makes, modulo 2^64
	marks    Marks
	hasMarks bool
	must     bool // MustWrite
	data     bool // it brings packets or values: not only what moves
}

// batchEntry is an entry of a batch.
type batchEntry struct {
	raw    []byte // as the journal has it, but for a value that lies apart; nil: nothing is written
	apart  []byte // that value
	size   int    // of the value that the store has; only asked if it is stored
	counts counted
	hash   uint64 // what it counts while it is a put
	stored bool   // the store has the key

	record  []byte  // of a put packet: the full record
	removed Removed // of a packet that another one replaces, or that goes
	payload bool    // of a packet: the next entry is about its payload; of an item: its value has one
	old     Mark    // of an item: what the store has

	withPacket bool // it deletes a part of the delivery state of a packet that goes
}

// kind returns the kind of an entry that is written.
func (e *batchEntry) kind() EntryKind { return EntryKind(e.raw[0]) }

func (e *batchEntry) puts() bool { return e.raw != nil && !e.kind().Deletes() }

func (e *batchEntry) key() []byte { return e.raw[2 : 2+e.raw[1]] }

// value returns the value that the entry puts.
func (e *batchEntry) value() []byte {
	if e.apart != nil {
		return e.apart
	}
	rest := e.raw[2+e.raw[1]:]
	for range 2 { // expiry and length
		_, n := binary.Uvarint(rest)
		rest = rest[n:]
	}
	return rest[:len(rest):len(rest)]
}

// Removed tells what Delete and Replace must know of the packet that goes.
type Removed struct {
	Size    int  // of its payload, in bytes
	Expires bool // the packet had an expiry
	Large   bool // its payload has a record of its own: Meta.Large, or IsLarge
	// Stored are the records of its delivery state, which go with it, and Identity names them. A
	// packet that moves keeps them: then Stored is 0.
	Stored   Stored
	Identity uint64
}

// IsLarge reports whether a payload of n bytes gets a record of its own.
func IsLarge(n int) bool { return n > largePayload }

const (
	chunkSize = 256 << 10
	// maxSpare chunks and keepEntries bound the memory that an idle batch keeps.
	maxSpare    = 16
	keepEntries = 1 << 15
)

// Reset empties the batch. Records handed out before are no longer valid.
func (b *Batch) Reset() {
	for _, chunk := range b.chunks {
		if cap(chunk) == chunkSize && len(b.spare) < maxSpare {
			b.spare = append(b.spare, chunk[:0])
		}
	}
	clear(b.entries)
	clear(b.at)
	clear(b.chunks)
	if cap(b.entries) > keepEntries { // a large call has filled them
		b.entries, b.at = nil, nil
	}
	if cap(b.scratch) > chunkSize {
		b.scratch = nil
	}
	*b = Batch{entries: b.entries[:0], at: b.at, chunks: b.chunks[:0], spare: b.spare, scratch: b.scratch}
}

// Put adds a packet, copying all it needs of p, and returns the number by which Record and Cancel
// know the operation. Nothing has that id on disk, or the batch deleted it before.
func (b *Batch) Put(id PacketID, p *Packet) (op int) {
	b.data = true
	return b.put(EntryNew, id, b.recordOf(p), p.Expiry, len(p.Payload), Removed{})
}

// recordOf makes the full record of a packet. That of a long payload is not copied again: put finds
// it where the next bytes of the batch belong.
func (b *Batch) recordOf(p *Packet) []byte {
	if len(p.Payload) > chunkSize {
		return AppendRecord(b.grow(len(p.Payload)+len(p.Key)+len(p.Meta)+ExtraBytes(p)+moreThanRecord), p)
	}
	b.scratch = AppendRecord(b.scratch[:0], p)
	return b.scratch
}

// moreThanRecord is more than a record has besides payload, key, meta and what ExtraBytes counts.
const moreThanRecord = 1 << 10

// Replace puts a packet in the place of one that an earlier batch put, in one operation: whatever
// happens, one of the two is there. For a packet that this batch put, use Cancel and Put.
func (b *Batch) Replace(id PacketID, p *Packet, r Removed) (op int) {
	b.forget(id, &r)
	return b.put(overOf(&r), id, b.recordOf(p), p.Expiry, len(p.Payload), r)
}

// PutRecord is Put for a packet whose full record is at hand, which is copied. It is one that
// DecodeRecord reads.
func (b *Batch) PutRecord(id PacketID, rec []byte) (op int) {
	var m Meta
	var x MetaRest
	_ = ReadRecord(rec, &m, &x, false)
	return b.put(EntryNew, id, rec, m.Expiry, len(x.payload), Removed{})
}

// put adds the entry of a packet, of which the expiry and the length of the payload are known. A
// large payload has another one.
func (b *Batch) put(kind EntryKind, id PacketID, rec []byte, expiry int64, payload int, r Removed) (op int) {
	op = len(b.entries)
	var room [2 * MaxKey]byte
	key, payloadKey := AppendPacketKey(room[:0], id), AppendPayloadKey(room[MaxKey:MaxKey], id)
	native, large := NativeExpiry(expiry), IsLarge(payload)
	e := batchEntry{stored: kind != EntryNew, removed: r, payload: large || r.Large}
	if !r.Large {
		e.size = r.Size
	}
	if large {
		own := b.grow(len(rec))[:len(rec)]
		if &own[0] != &rec[0] {
			copy(own, rec)
		}
		e.record = slices.Clip(own)
		b.keep(len(rec))
		head := CutPayload(rec)
		e.raw = b.entry(kind, key, native, len(head), head)
	} else {
		e.raw = b.entry(kind, key, native, len(rec), rec)
		e.record = e.raw[len(e.raw)-len(rec):]
	}
	if expiry == 0 {
		e.counts, e.hash = countedPacket, SetHash(id)
	}
	b.add(e)
	switch {
	case large:
		if kind = EntryNew; r.Large {
			kind = EntryOver
		}
		b.add(batchEntry{raw: b.entry(kind, payloadKey, native, payload, nil), apart: e.record[len(rec)-payload:], stored: r.Large, size: r.Size})
	case r.Large:
		b.addDelete(payloadKey, batchEntry{size: r.Size})
	}
	return op
}

// addDelete adds the delete of a key that the store has.
func (b *Batch) addDelete(key []byte, e batchEntry) {
	e.raw, e.stored = b.entry(deleteOf(&e.removed), key, 0, 0, nil), true
	b.add(e)
}

// Record returns the full record of a Put or a Replace, cancelled or not, valid until Reset.
func (b *Batch) Record(op int) []byte { return b.entries[op].record }

// Cancel takes a Put back: its packet was popped again before the batch was sealed, so neither
// needs the disk. Of a Replace it leaves a Delete of what is on disk. A second Cancel does
// nothing.
func (b *Batch) Cancel(op int) {
	b.remove(&b.entries[op])
	if b.entries[op].payload {
		b.remove(&b.entries[op+1])
	}
}

// Delete removes a packet that an earlier batch put. For one that this batch put, use Cancel. A
// packet that moves to another priority is deleted first and put then, in one batch; it may move
// back.
func (b *Batch) Delete(id PacketID, r Removed) {
	b.forget(id, &r)
	var key [MaxKey]byte
	e := batchEntry{removed: r, payload: r.Large}
	if !r.Large {
		e.size = r.Size
	}
	b.addDelete(AppendPacketKey(key[:0], id), e)
	if r.Large {
		b.addDelete(AppendPayloadKey(key[:0], id), batchEntry{size: r.Size})
	}
}

// forget takes a packet that goes out of the tally, and its delivery state out of the store.
func (b *Batch) forget(id PacketID, r *Removed) {
	if !r.Expires {
		b.tally.count(countedPacket, -1, SetHash(id))
	}
	if r.Stored != 0 {
		r.Identity = cmp.Or(r.Identity, id.Seq)
		r.Stored = b.deleteStates(r.Identity, r.Stored, true)
	}
}

// PutQueue writes a queue definition, and the counters unless all are 0. Within one batch the last
// call for an identity wins.
func (b *Batch) PutQueue(q Queue) {
	var key [MaxKey]byte
	b.scratch = AppendQueue(b.scratch[:0], &q)
	b.putKey(AppendQueueKey(key[:0], q.ID), known{stored: !q.New}, b.scratch, 0)
	if q.Counters != (Counters{}) {
		b.PutCounters(q.ID, q.Counters)
	}
}

// PutCounters writes the counters of a queue that is defined. Within one batch the last call wins.
func (b *Batch) PutCounters(id uint32, c Counters) {
	var room [MaxKey]byte
	key, k := b.countersOf(room[:0], id)
	b.scratch = AppendCounters(b.scratch[:0], &c)
	b.putKey(key, k, b.scratch, 0)
}

// DeleteQueue removes a queue definition, and the counters. When the batch itself defined the queue
// as new, nothing is left to write.
func (b *Batch) DeleteQueue(id uint32) {
	var room [MaxKey]byte
	b.deleteKey(AppendQueueKey(room[:0], id), known{stored: true})
	b.deleteKey(b.countersOf(room[:0], id))
}

// countersOf returns the key of the counters of a queue, which the store may have if it has the
// queue.
func (b *Batch) countersOf(dst []byte, id uint32) (key []byte, k known) {
	key = AppendQueueKey(dst, id)
	e := b.find(key)
	return append(key, CountersKey), known{stored: e == nil || e.stored, unsure: true}
}

// SetMarks gives the marks that the control record holds after this batch. Without it they stay as
// they are.
func (b *Batch) SetMarks(m Marks) { b.marks, b.hasMarks = m, true }

// MustWrite has Apply write the batch even if it holds nothing but marks.
func (b *Batch) MustWrite() { b.must = true }

// Empty reports whether there is nothing to write.
func (b *Batch) Empty() bool { return b.count == 0 && !b.must }

// Brings reports whether packets or values come, and not only what moves or goes.
func (b *Batch) Brings() bool { return b.data }

// Tally returns the difference that the batch makes, modulo 2^64.
func (b *Batch) Tally() Tally { return b.tally }

// Marks returns what SetMarks set; set is false if it was not called.
func (b *Batch) Marks() (m Marks, set bool) { return b.marks, b.hasMarks }

// Len returns how many entries the batch would write, in the measure of Limits.MaxOps. A large
// packet counts twice.
func (b *Batch) Len() int { return b.count }

// Bytes returns what the batch would write, in the measure of Limits.MaxBytes.
func (b *Batch) Bytes() int { return b.bytes }

// Memory returns the bytes of memory that the records in the batch take, those of cancelled
// operations included.
func (b *Batch) Memory() int { return b.memory }

// Body appends the pieces of what is written. A value that lies apart is one. hides is appended how
// many bytes of the tables each entry hides, if they have its key, about.
func (b *Batch) Body(pieces [][]byte, hides []uint32) ([][]byte, []uint32) {
	for i := range b.entries {
		e := &b.entries[i]
		if e.raw == nil {
			continue
		}
		if pieces = append(pieces, e.raw); e.apart != nil {
			pieces = append(pieces, e.apart)
		}
		bytes := 0
		if e.stored {
			bytes = len(e.key()) + EntryBytes + e.size
		}
		hides = append(hides, uint32(bytes))
	}
	return pieces, hides
}

// known tells what the first call for a key says of the store.
type known struct {
	stored bool // it has the key
	unsure bool // or may have it, though it does not show
	size   int  // of its value there
	counts counted
	hash   uint64 // what the key counts in the store
}

// find returns the entry of a key that is no packet's, nil if there is none.
func (b *Batch) find(key []byte) *batchEntry {
	if at, there := b.at[FixedKeyOf(key)]; there {
		return &b.entries[at]
	}
	return nil
}

// entryOf is find, and makes the entry if there is none.
func (b *Batch) entryOf(key []byte, k known) *batchEntry {
	own := FixedKeyOf(key)
	if at, there := b.at[own]; there {
		return &b.entries[at]
	}
	if b.at == nil {
		b.at = make(map[FixedKey]int32)
	}
	b.at[own] = int32(len(b.entries))
	b.add(batchEntry{stored: k.stored, size: k.size, counts: k.counts})
	if k.stored {
		b.tally.count(k.counts, -1, k.hash)
	}
	return &b.entries[len(b.entries)-1]
}

// putKey writes a key that is no packet's. Its value, which is copied, counts hash.
func (b *Batch) putKey(key []byte, k known, value []byte, hash uint64) {
	b.write(b.entryOf(key, k), key, k.unsure, value, hash)
}

// write is putKey where the entry is known.
func (b *Batch) write(e *batchEntry, key []byte, unsure bool, value []byte, hash uint64) {
	kind := EntryNew
	if e.stored || unsure {
		kind = EntryOver
	}
	b.weigh(e, -1)
	e.raw, e.hash = b.entry(kind, key, 0, len(value), value), hash
	b.weigh(e, 1)
}

// deleteKey deletes a key that is no packet's, if the store has it.
func (b *Batch) deleteKey(key []byte, k known) {
	e := b.entryOf(key, k)
	if e.raw == nil && e.stored {
		e.raw = b.entry(EntryDelete, key, 0, 0, nil)
		b.weigh(e, 1)
	}
	b.remove(e)
}

// remove leaves of an entry the delete of what the store has.
func (b *Batch) remove(e *batchEntry) {
	b.weigh(e, -1)
	e.apart = nil
	if !e.stored {
		e.raw = nil
	} else if e.raw != nil {
		e.raw = e.raw[:2+e.raw[1]]
		e.raw[0] = byte(deleteOf(&e.removed))
	}
	b.weigh(e, 1)
}

func (b *Batch) add(e batchEntry) {
	if n := len(b.entries); n == cap(b.entries) { // append makes a long slice longer by a quarter
		longer := make([]batchEntry, n, max(2*n, 64))
		copy(longer, b.entries)
		b.entries = longer
	}
	b.entries = append(b.entries, e)
	b.weigh(&e, 1)
}

// weigh adds an entry to the totals, or takes it out of them.
func (b *Batch) weigh(e *batchEntry, sign int) {
	if e.raw == nil {
		return
	}
	b.count += sign
	b.bytes += sign * (len(e.raw) + len(e.apart))
	if !e.kind().Deletes() {
		b.tally.count(e.counts, sign, e.hash)
	}
}

// entry makes an entry of a value of some length, which is copied. One that is nil lies apart.
func (b *Batch) entry(kind EntryKind, key []byte, expires uint64, length int, value []byte) (raw []byte) {
	raw = append(AppendEntryHead(b.grow(maxHead+len(value)), kind, key, expires, length), value...)
	b.keep(len(raw))
	return slices.Clip(raw)
}

// grow returns an empty slice with room for n bytes at the end of a chunk; keep makes what was
// appended to it part of the batch.
func (b *Batch) grow(n int) []byte {
	if last := len(b.chunks) - 1; last >= 0 {
		if c := b.chunks[last]; cap(c)-len(c) >= n {
			return c[len(c):len(c):cap(c)]
		}
	}
	var c []byte
	switch {
	case n > chunkSize:
		c = make([]byte, 0, n)
	case len(b.spare) > 0:
		c = b.spare[len(b.spare)-1]
		b.spare = b.spare[:len(b.spare)-1]
	default:
		c = make([]byte, 0, chunkSize)
	}
	b.chunks = append(b.chunks, c)
	return c
}

func (b *Batch) keep(n int) {
	last := len(b.chunks) - 1
	b.chunks[last] = b.chunks[last][:len(b.chunks[last])+n]
	b.memory += n
}
