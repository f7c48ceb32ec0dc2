package content

// PutDelivery writes a delivery state and those notes that it has, copying all it needs of d.
// stored says what the store had of it before this call. Within one batch the last call for an
// identity wins, and a state that comes and goes in one batch leaves nothing to write.
func (b *Batch) PutDelivery(d *Delivery, stored Stored) {
	var key [MaxKey]byte
	id := NoteID{Identity: d.Identity}
	b.scratch = AppendDelivery(b.scratch[:0], d)
	b.putKey(AppendStateKey(key[:0], id), id.known(stored), b.scratch, deliveryHash(d.Identity))
	for kind, text := range [stateKinds]string{NoteReason: d.Reason, NoteProgress: d.Progress} {
		if text != "" {
			b.PutNote(NoteID{d.Identity, NoteKind(kind)}, []byte(text), stored)
		}
	}
}

// PutNote writes a note, which is copied; an empty one is deleted. stored as for PutDelivery.
func (b *Batch) PutNote(id NoteID, text []byte, stored Stored) {
	var key [MaxKey]byte
	if len(text) == 0 {
		b.deleteKey(AppendStateKey(key[:0], id), id.known(stored))
		return
	}
	b.putKey(AppendStateKey(key[:0], id), id.known(stored), text, 0)
}

// DeleteDelivery deletes a delivery state and its notes: those that stored names. It is for a
// packet whose Put is cancelled. Of one that is deleted, Removed says the same.
func (b *Batch) DeleteDelivery(identity uint64, stored Stored) {
	b.deleteStates(identity, stored, false)
}

// deleteStates returns what it deletes of the store.
func (b *Batch) deleteStates(identity uint64, stored Stored, withPacket bool) (gone Stored) {
	var room [MaxKey]byte
	for kind := range NoteKind(stateKinds) {
		if stored&(1<<kind) == 0 {
			continue
		}
		id := NoteID{identity, kind}
		key := AppendStateKey(room[:0], id)
		e := b.find(key)
		if e == nil { // and nobody looks for it
			b.addDelete(key, batchEntry{withPacket: withPacket})
			k := id.known(stored)
			b.tally.count(k.counts, -1, k.hash)
			gone |= 1 << kind
			continue
		}
		if b.remove(e); e.stored {
			gone |= 1 << kind
		}
		e.withPacket = withPacket
	}
	return gone
}

// known turns stored into what the store has of a record.
func (id NoteID) known(stored Stored) known {
	k := known{stored: stored&(1<<id.Kind) != 0}
	if id.Kind == 0 {
		k.counts, k.hash = countedDelivery, deliveryHash(id.Identity)
	}
	return k
}

// Note returns the text of a note that the batch puts, valid until Reset; ok is false if it puts
// none.
func (b *Batch) Note(id NoteID) (text []byte, ok bool) {
	var key [MaxKey]byte
	e := b.find(AppendStateKey(key[:0], id))
	if e == nil || !e.puts() {
		return nil, false
	}
	return e.value(), true
}
