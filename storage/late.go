package storage

// A packet whose record is on disk only can move to another place within a batch: the batch is told
// how much comes, and gets the record when somebody has read it, before Apply.

// lateRoom is counted for what a late record has besides key and payload, with an expiry and an
// identity that it gets when it moves.
const lateRoom = 72

// PutRecord is Put for a packet whose full record is at hand, which is copied. It is one that
// DecodeRecord reads.
func (b *Batch) PutRecord(id PacketID, rec []byte) (op int) {
	o := batchOp{kind: OpPut, id: id}
	b.setRecord(&o, rec)
	return b.add(o)
}

// PutLate is Put for a packet whose record Fill brings before Apply. size is the bytes of its key
// and payload, and large says that the payload has a record of its own.
func (b *Batch) PutLate(id PacketID, size int, expiry int64, large bool) (op int) {
	o := batchOp{kind: OpPut, id: id, expiry: expiry, lateSize: size + lateRoom}
	if large {
		o.head = []byte{}
	}
	return b.add(o)
}

// Fill gives a PutLate its full record, which is copied. It is one that DecodeRecord reads. If the
// PutLate is cancelled Fill does nothing.
func (b *Batch) Fill(op int, rec []byte) {
	o := &b.ops[op]
	if o.cancelled {
		return
	}
	b.count -= o.entries()
	b.bytes -= o.bytes()
	b.setRecord(o, rec)
	b.count += o.entries()
	b.bytes += o.bytes()
}

// setRecord makes rec what o puts, and splits a large payload off.
func (b *Batch) setRecord(o *batchOp, rec []byte) {
	var m Meta
	var x metaRest
	large := readRecord(rec, &m, &x, false) == nil && IsLarge(len(x.payload))
	room := len(rec)
	if large {
		room += x.at + 10
	}
	buf := append(b.grow(room), rec...)
	o.rec, o.head, o.payload, o.expiry = buf[:len(rec):len(rec)], nil, nil, m.Expiry
	if large {
		o.payload = o.rec[len(rec)-len(x.payload):]
		o.head = append(buf[len(rec):len(rec)], rec[:x.at]...)
		o.head = appendUint(append(o.head, fieldSize), x.size)
	}
	b.keep(len(o.rec) + len(o.head))
}
