package index

import "hash/maphash"

// identities finds packets by their identity. The table is built when it is first wanted, and no
// longer kept up to date when the last packet is gone. Identities are not stored a second time: a
// chain links numbers of packets.
type identities struct {
	built   bool
	seed    maphash.Seed // its own, so that no client can aim at one bucket
	buckets buckets
	next    paged[uint32]  // by number of the packet: the next one of the chain
	moved   sparse[uint64] // the identities that are not the sequence, by number of the packet
}

// identity is the packet's own number.
func (x *Index) identity(id uint32, e *entry) uint64 {
	if e.rare&rareIdentity != 0 {
		return x.identities.moved.at(id)
	}
	return e.seqNumber()
}

func (x *Index) setIdentity(id uint32, e *entry, identity uint64) {
	if e.rare &^= rareIdentity; identity != e.seqNumber() {
		e.rare |= rareIdentity
		x.identities.moved.set(id, identity)
	}
}

func (t *identities) bucket(identity uint64) *uint32 {
	return t.buckets.of(maphash.Comparable(t.seed, identity))
}

// Find returns the packet with an identity, in any state and any queue. The first call builds a
// table of all packets, which is kept up to date from then on, until no packet is left. O(1).
func (x *Index) Find(identity uint64) (Packet, bool) {
	if x.entries.live == 0 {
		return Packet{}, false
	}
	t := &x.identities
	if !t.built {
		x.buildIdentities()
	}
	for id := *t.bucket(identity); id != 0; id = *t.next.at(id) {
		if e := x.entries.at(id); x.identity(id, e) == identity {
			return x.packet(id, e), true
		}
	}
	return Packet{}, false
}

// buildIdentities makes the table of all packets.
func (x *Index) buildIdentities() {
	t := &x.identities
	t.built, t.seed = true, maphash.MakeSeed()
	t.buckets.resize(max(x.entries.live, minBuckets))
	t.next.resize(x.entries.used)
	for id := uint32(1); id < x.entries.used; id++ {
		if e := x.entries.at(id); e.state != 0 {
			x.chainIdentity(id, e)
		}
	}
}

func (x *Index) chainIdentity(id uint32, e *entry) {
	b := x.identities.bucket(x.identity(id, e))
	*x.identities.next.at(id), *b = *b, id
}

// addIdentity puts a new packet into the table if there is one.
func (x *Index) addIdentity(id uint32, e *entry) {
	t := &x.identities
	if !t.built {
		return
	}
	t.next.resize(x.entries.used)
	x.chainIdentity(id, e)
	if x.entries.live > t.buckets.size {
		for id := t.buckets.split(); id != 0; {
			next := *t.next.at(id)
			x.chainIdentity(id, x.entries.at(id))
			id = next
		}
	}
}

// removeIdentity takes a packet that goes out of the table if there is one.
func (x *Index) removeIdentity(id uint32, e *entry) {
	t := &x.identities
	if t.built {
		b := t.bucket(x.identity(id, e))
		for *b != id {
			b = t.next.at(*b)
		}
		*b = *t.next.at(id)
		for range t.buckets.excess(x.entries.live) {
			to, chain := t.buckets.merge()
			for *to != 0 {
				to = t.next.at(*to)
			}
			*to = chain
		}
	}
	if x.entries.live == 1 {
		t.clear()
	}
}

// clear ends the table of an index without packets, and frees all memory but a little: an index
// whose length swings around zero allocates nothing.
func (t *identities) clear() {
	t.built = false
	t.buckets.resize(0)
	t.next.resize(0)
	t.moved.clear()
}
