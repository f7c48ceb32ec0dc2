package broker

import (
	"math/rand/v2"

	"github.com/holdfast-queue/holdfast/index"
)

// Scan calls fn with some names and returns a cursor for the next call, 0 after the last. It starts
// with 0. A name that is there from the first call to the last is given at least once. It looks at
// about n names. fn must not make calls.
func (tx *Tx) Scan(cursor uint64, n int, fn func(name []byte, t Type)) (next uint64) {
	const keys = 1 << 32 // the first cursor of keys; below it are queues
	b := tx.b
	n = max(n, 1)
	looks := 10 * n
	for ; cursor < uint64(len(b.queues.all)); cursor++ {
		if n == 0 || looks == 0 {
			return cursor
		}
		looks--
		if q := b.queues.all[cursor]; b.isList(q) {
			fn([]byte(q.name), TypeList)
			n--
		}
	}
	cursor = max(cursor, keys)
	if n == 0 || looks == 0 {
		return cursor
	}
	slot, done := b.keys.Scan(uint32(cursor-keys), n, func(k *index.Key) { fn([]byte(k.Name()), typeOf(k)) })
	if done {
		return 0
	}
	return keys + uint64(slot)
}

// isList says that q, which may be nil, has its name.
func (b *Broker) isList(q *queue) bool {
	return q != nil && !q.dropped && b.exists(q)
}

// RandomName appends any name to dst; ok is false if there is none.
func (tx *Tx) RandomName(dst []byte) (name []byte, ok bool) {
	b := tx.b
	lists := tx.lists()
	if n := lists + b.keys.Len(); n == 0 {
		return dst, false
	} else if at := rand.IntN(n); at >= lists {
		return append(dst, b.keys.Pick(rand.IntN).Name()...), true
	}
	all := b.queues.all
	for at := rand.IntN(len(all)); ; at = (at + 1) % len(all) {
		if b.isList(all[at]) {
			return append(dst, all[at].name...), true
		}
	}
}

// NameCount returns how many names there are, and how many of them expire.
func (tx *Tx) NameCount() (names, expiring int) {
	return tx.lists() + tx.b.keys.Len(), tx.b.keys.Expiring()
}

// lists returns how many queues have their names.
func (tx *Tx) lists() (n int) {
	for _, q := range tx.b.queues.all {
		if tx.b.isList(q) {
			n++
		}
	}
	return n
}
