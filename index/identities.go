package index

import (
	"hash/maphash"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// identities finds packets by their identity. The table is built in slices, from when it is first
// wanted, and no longer kept up to date when the last packet is gone. Identities are not stored a
// second time: a chain links numbers of packets.
type identities struct {
	built   uint32       // packets with a lower number are in the table; 0: there is none
	held    uint32       // how many that are
	seed    maphash.Seed // its own, so that no client can aim at one bucket
	buckets buckets
	next    tree.Paged[uint32]  // by number of the packet: the next one of the chain
	moved   tree.Sparse[uint64] // the identities that are not the sequence, by number of the packet
}

// identity is the packet's own number.
func (x *Index) identity(id uint32, e *entry) uint64 {
	if e.rare&rareIdentity != 0 {
		return x.identities.moved.At(id)
	}
	return e.seqNumber()
}

func (x *Index) setIdentity(id uint32, e *entry, identity uint64) {
	if e.rare &^= rareIdentity; identity != e.seqNumber() {
		e.rare |= rareIdentity
		x.identities.moved.Set(id, identity)
	}
}

// allBuilt is the end of the build: the table holds all packets, also those to come.
const allBuilt = ^uint32(0)

func (t *identities) bucket(identity uint64) *uint32 {
	return t.buckets.of(maphash.Comparable(t.seed, identity))
}

// Find returns the packet with an identity, in any state and any queue. O(1) once the table is
// complete. Before, it looks at all packets that are not in the table, and brings a part of them
// into it: to build all at once would take twenty times as long.
func (x *Index) Find(identity uint64) (Packet, bool) {
	if x.entries.Live == 0 {
		return Packet{}, false
	}
	t := &x.identities
	x.BuildIdentities((x.entries.Used-min(t.built, x.entries.Used))/16 + tree.PageLen)
	for id := *t.bucket(identity); id != 0; id = *t.next.At(id) {
		if e := x.entries.At(id); x.identity(id, e) == identity {
			return x.packet(id, e), true
		}
	}
	for id := t.built; id < x.entries.Used; id++ {
		if e := x.entries.At(id); e.state != 0 && x.identity(id, e) == identity {
			return x.packet(id, e), true
		}
	}
	return Packet{}, false
}

// BuildIdentities goes on with the table of all packets, by at most n numbers. It returns false
// when the table is complete, or there is no packet. It is kept up to date from then on.
func (x *Index) BuildIdentities(n uint32) (more bool) {
	t := &x.identities
	if t.built == allBuilt || x.entries.Live == 0 {
		return false
	}
	if t.built == 0 {
		t.built, t.seed = 1, maphash.MakeSeed()
		t.buckets.resize(minBuckets)
	}
	end := t.built + min(n, x.entries.Used-t.built)
	t.next.Resize(end)
	for id := t.built; id < end; id++ {
		if e := x.entries.At(id); e.state != 0 {
			x.insertIdentity(id, e)
		}
	}
	if t.built = end; end == x.entries.Used {
		t.built = allBuilt
	}
	return t.built != allBuilt
}

func (x *Index) chainIdentity(id uint32, e *entry) {
	b := x.identities.bucket(x.identity(id, e))
	*x.identities.next.At(id), *b = *b, id
}

// addIdentity puts a new packet into the table, unless the build comes to it.
func (x *Index) addIdentity(id uint32, e *entry) {
	t := &x.identities
	if id >= t.built {
		return
	}
	if t.built == allBuilt {
		t.next.Resize(x.entries.Used)
	}
	x.insertIdentity(id, e)
}

func (x *Index) insertIdentity(id uint32, e *entry) {
	t := &x.identities
	x.chainIdentity(id, e)
	if t.held++; t.held > t.buckets.size {
		for id := t.buckets.split(); id != 0; {
			next := *t.next.At(id)
			x.chainIdentity(id, x.entries.At(id))
			id = next
		}
	}
}

// removeIdentity takes a packet that goes out of the table if it is there.
func (x *Index) removeIdentity(id uint32, e *entry) {
	t := &x.identities
	if id < t.built {
		b := t.bucket(x.identity(id, e))
		for *b != id {
			b = t.next.At(*b)
		}
		*b = *t.next.At(id)
		t.held--
		for range t.buckets.excess(t.held) {
			to, chain := t.buckets.merge()
			for *to != 0 {
				to = t.next.At(*to)
			}
			*to = chain
		}
	}
	if x.entries.Live == 1 {
		t.clear()
	}
}

// clear ends the table of an index without packets, and frees all memory but a little: an index
// whose length swings around zero allocates nothing.
func (t *identities) clear() {
	t.built, t.held = 0, 0
	t.buckets.resize(0)
	t.next.Resize(0)
	t.moved.Clear()
}
