package broker

// Expiry returns when a name expires, in Unix milliseconds, 0 for never; ok is false if nothing has
// it.
func (tx *Tx) Expiry(name []byte) (at int64, ok bool) {
	b := tx.b
	if k := b.keys.Find(name); k != nil {
		return k.Expiry(), true
	}
	if q := b.listNamed(name); q != nil {
		return b.keys.QueueExpiry(q.ix), true
	}
	return 0, false
}

// SetExpiry lets a name expire at a moment in Unix milliseconds, 0 for never. A moment that is past
// deletes it. ok is false if nothing has the name.
func (tx *Tx) SetExpiry(name []byte, at int64) (ok bool, err error) {
	b := tx.b
	if at != 0 && at <= tx.now {
		return tx.Delete(name)
	}
	k, q := b.keys.Find(name), b.listNamed(name)
	room := Room{Records: 1, Bytes: len(name)}
	switch {
	case k != nil && !k.Large():
		room.Bytes += k.Len()
	case q != nil:
		room.Bytes += settingsBytes(q)
	}
	if err := tx.begin(room); err != nil {
		return false, err
	}
	switch was, _ := tx.Expiry(name); {
	case k == nil && q == nil:
		return false, nil
	case was == 0 && at == 0:
		return true, nil
	case was == at:
	case k != nil:
		b.keys.SetExpiry(k, at)
		b.putHead(k)
	default:
		b.setQueueExpiry(q, at)
	}
	b.touchName(string(name))
	return true, nil
}

// setQueueExpiry lets a queue expire, and brings that to disk.
func (b *Broker) setQueueExpiry(q *queue, at int64) {
	b.keys.SetQueueExpiry(q.ix, at)
	b.open.ops.PutQueue(b.definition(q))
}

// Now returns the moment of the transaction in Unix milliseconds. What expires by then is gone.
func (tx *Tx) Now() int64 { return tx.now }

// Steady returns the same moment in milliseconds of a clock that never jumps: waits end by it.
func (tx *Tx) Steady() int64 { return tx.steady }

// expireNames deletes the strings, hashes and queues that are due. It returns false if the batch
// was full before all were deleted.
func (b *Broker) expireNames(now int64) bool {
	for {
		k, ix := b.keys.Due(now)
		switch {
		case k == nil && ix == 0:
			return true
		case b.open.full(b.limits):
			return false
		case k != nil:
			b.deleteKey(k)
		default:
			b.dropQueue(b.queues.of(ix)) // which ends the expiry, on disk, too
		}
	}
}
