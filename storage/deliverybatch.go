package storage

// Calls for the delivery state of one packet within a batch are one operation, as those for a head
// or a field are: the last call for each of its records says what is written, and the first one
// what was on disk.

// stateOp is what a batch does to a delivery state and its notes.
type stateOp struct {
	identity uint64
	known    Stored // the records that the batch had a call for
	old      Stored // those of known that are on disk
	recs     [stateKinds][]byte
}

// PutDelivery writes a delivery state and those notes that it has, copying all it needs of d.
// stored says what the store had of it before this call. Within one batch the last call for an
// identity wins, and a state that comes and goes in one batch leaves nothing to write.
func (b *Batch) PutDelivery(d *Delivery, stored Stored) {
	rec := appendDelivery(b.grow(stateRoom+len(d.Consumer)), d)
	b.keep(len(rec))
	b.setState(NoteID{Identity: d.Identity}, rec, stored)
	for kind, text := range [stateKinds]string{NoteReason: d.Reason, NoteProgress: d.Progress} {
		if text != "" {
			b.PutNote(NoteID{d.Identity, NoteKind(kind)}, []byte(text), stored)
		}
	}
}

// PutNote writes a note, which is copied; an empty one is deleted. stored as for PutDelivery.
func (b *Batch) PutNote(id NoteID, text []byte, stored Stored) {
	var rec []byte
	if len(text) > 0 {
		rec = append(b.grow(len(text)), text...)
		b.keep(len(rec))
	}
	b.setState(id, rec, stored)
}

// DeleteDelivery deletes a delivery state and its notes: those that stored names. It is for a
// packet whose Put is cancelled. Of one that is deleted, Removed says the same.
func (b *Batch) DeleteDelivery(identity uint64, stored Stored) {
	o := b.stateOf(identity)
	b.forgetState(o)
	o.learn(stored, storedAll)
	clear(o.recs[:])
	b.countState(o)
}

// Note returns the text of a note that the batch puts, valid until Reset; ok is false if it puts
// none.
func (b *Batch) Note(id NoteID) (text []byte, ok bool) {
	at, ok := b.stateAt[id.Identity]
	if !ok {
		return nil, false
	}
	text = b.states[at].recs[id.Kind]
	return text, text != nil
}

// setState makes rec what the batch writes of one record, which it deletes when rec is nil.
func (b *Batch) setState(id NoteID, rec []byte, stored Stored) {
	o := b.stateOf(id.Identity)
	b.forgetState(o)
	o.learn(stored, 1<<id.Kind)
	o.recs[id.Kind] = rec[:len(rec):len(rec)]
	b.countState(o)
}

// stateOf returns the operation on a delivery state, a new one if there is none.
func (b *Batch) stateOf(identity uint64) *stateOp {
	at, ok := b.stateAt[identity]
	if !ok {
		if b.stateAt == nil {
			b.stateAt = make(map[uint64]int32)
		}
		at = int32(len(b.states))
		b.stateAt[identity] = at
		b.states = append(b.states, stateOp{identity: identity})
	}
	return &b.states[at]
}

// forgetState takes an operation out of the totals of the batch, and countState adds it.
func (b *Batch) forgetState(o *stateOp) {
	b.count -= o.entries()
	b.bytes -= o.bytes()
}

func (b *Batch) countState(o *stateOp) {
	b.count += o.entries()
	b.bytes += o.bytes()
}

// takeStates returns r with those records of the delivery state that are on disk: the packet's own
// operation deletes them, and what the batch put of them is dropped.
func (b *Batch) takeStates(id PacketID, r Removed) Removed {
	if r.Stored == 0 {
		return r
	}
	if r.Identity == 0 {
		r.Identity = id.Seq
	}
	if at, ok := b.stateAt[r.Identity]; ok {
		o := &b.states[at]
		b.forgetState(o)
		o.learn(r.Stored, storedAll)
		r.Stored = o.old
		*o = stateOp{identity: o.identity, known: storedAll}
	}
	return r
}

// learn notes which of some records were there, unless the batch had a call for them before.
func (o *stateOp) learn(stored, of Stored) {
	o.old |= stored & of &^ o.known
	o.known |= of
}

// puts returns what is written; what is old besides is deleted.
func (o *stateOp) puts() (s Stored) {
	for kind, rec := range o.recs {
		if rec != nil {
			s |= 1 << kind
		}
	}
	return s
}

func (o *stateOp) entries() int { return (o.old | o.puts()).count() }

func (o *stateOp) bytes() int {
	n := o.entries() * (noteKeyLen + opBytes)
	for _, rec := range o.recs {
		n += len(rec)
	}
	return n
}

// show calls fn with the operation as Each shows it.
func (o *stateOp) show(fn func(Op)) {
	for kind, rec := range o.recs {
		op := Op{Kind: OpPutNote, Note: NoteID{o.identity, NoteKind(kind)}, Record: rec, Stored: o.old}
		if kind == 0 {
			op = Op{Kind: OpPutDelivery, Stored: o.old}
		}
		if rec != nil && (kind > 0 || decodeDelivery(rec, o.identity, &op.Delivery) == nil) {
			fn(op)
		}
	}
	if gone := o.old &^ o.puts(); gone != 0 {
		fn(Op{Kind: OpDeleteDelivery, Note: NoteID{Identity: o.identity}, Stored: gone})
	}
}

// states adds the delivery states.
func (e *entries) states(b *Batch, next *Control) {
	var room [maxKey]byte
	for i := range b.states {
		o := &b.states[i]
		if o.old&StoredDelivery != 0 {
			next.removeDelivery(o.identity)
		}
		if o.recs[0] != nil {
			next.AddDelivery(o.identity)
		}
		for kind, rec := range o.recs {
			if rec != nil {
				e.put(appendStateKey(room[:0], NoteID{o.identity, NoteKind(kind)}), rec, 0, o.old&(1<<kind) != 0)
			}
		}
		e.deleteStates(o.identity, o.old&^o.puts())
	}
}

// deleteStates deletes some records of a delivery state.
func (e *entries) deleteStates(identity uint64, stored Stored) {
	var room [maxKey]byte
	for kind := range NoteKind(stateKinds) {
		if stored&(1<<kind) != 0 {
			e.delete(appendStateKey(room[:0], NoteID{identity, kind}))
		}
	}
}
