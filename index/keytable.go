package index

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// MaxKey is the longest key in bytes: group.info has 24 bits for its length.
const MaxKey = 1<<24 - 1

const (
	inlineKey    = 12 // a key up to this length is stored in its group
	inlinePrefix = 4  // bytes of a longer key in its group; its hash and a block number follow
	blockKey     = 12 // bytes of a key in a block
)

// group is the packets of one queue with one key. It lives as long as it has a member.
type group struct {
	next  uint32 // chain of the bucket; links free slots
	queue QueueID
	head  uint32          // an entry of a ring, or a largeGroup; see groups.go
	info  uint32          // key length << 8 | ready members in the ring, or largeMark
	key   [inlineKey]byte // the key, or its start, its hash and the number of its last block
}

func (g *group) FreeLink() *uint32 { return &g.next }

func (g *group) keyLen() int { return int(g.info >> 8) }

// block is the next bytes of a long key. The blocks of one form a ring, so that they go at once.
type block struct {
	next uint32
	data [blockKey]byte
}

func (b *block) FreeLink() *uint32 { return &b.next }

// keyTable finds the group of a key by linear hashing: it grows and shrinks one bucket at a time,
// so no operation pays for a rehash of the whole. Keys are compared byte for byte; the hash only
// picks the bucket. Its seed is the table's own, so that no client can aim at one bucket. That of a
// long key stays in its group: keys of a MiB take as long to read as a thousand packets.
type keyTable struct {
	seed    maphash.Seed
	groups  tree.Slab[group, *group]
	blocks  tree.Slab[block, *block]
	buckets buckets // chains of groups
}

func newKeyTable() keyTable {
	t := keyTable{seed: maphash.MakeSeed()}
	t.buckets.resize(minBuckets)
	return t
}

func (t *keyTable) hash(q QueueID, key []byte) uint64 {
	h := maphash.Bytes(t.seed, key) + uint64(q)*0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

// find returns the group of a key, or 0.
func (t *keyTable) find(q QueueID, key []byte) uint32 {
	return t.findIn(*t.buckets.of(t.hash(q, key)), q, key)
}

func (t *keyTable) findIn(id uint32, q QueueID, key []byte) uint32 {
	for id != 0 {
		g := t.groups.At(id)
		if g.queue == q && t.equal(g, key) {
			return id
		}
		id = g.next
	}
	return 0
}

// findOrAdd returns the group of a key, a new one if there is none.
func (t *keyTable) findOrAdd(q QueueID, key []byte) uint32 {
	h := t.hash(q, key)
	if id := t.findIn(*t.buckets.of(h), q, key); id != 0 {
		return id
	}
	id := t.groups.Alloc()
	g := t.groups.At(id)
	g.queue = q
	t.storeKey(g, key, h)
	b := t.buckets.of(h)
	g.next, *b = *b, id
	if t.groups.Live > t.buckets.size {
		t.splitBucket()
	}
	return id
}

// remove frees a group without members.
func (t *keyTable) remove(id uint32) {
	b := t.buckets.of(t.hashOf(id))
	for *b != id {
		b = &t.groups.At(*b).next
	}
	*b = t.groups.At(id).next
	t.freeGroup(id)
	for range t.buckets.excess(t.groups.Live) {
		to, chain := t.buckets.merge()
		for *to != 0 {
			to = &t.groups.At(*to).next
		}
		*to = chain
	}
}

// freeGroup frees the slot and the blocks of a group that is in no chain.
func (t *keyTable) freeGroup(id uint32) {
	if g := t.groups.At(id); g.keyLen() > inlineKey {
		last := g.lastBlock()
		t.blocks.FreeChain(t.blocks.At(last).next, last, blocksOf(g.keyLen()))
	}
	t.groups.Free(id)
}

// splitBucket adds a bucket and moves into it the groups that belong there from the bucket it
// splits off.
func (t *keyTable) splitBucket() {
	for id := t.buckets.split(); id != 0; {
		g := t.groups.At(id)
		next := g.next
		to := t.buckets.of(t.hashOf(id))
		g.next, *to = *to, id
		id = next
	}
}

// hashOf is the hash of a group that is in the table.
func (t *keyTable) hashOf(id uint32) uint64 {
	g := t.groups.At(id)
	if n := g.keyLen(); n <= inlineKey {
		return t.hash(g.queue, g.key[:n])
	}
	return uint64(binary.LittleEndian.Uint32(g.key[inlinePrefix:])) // a bucket needs no more
}

// appendKey appends the key of a group to dst.
func (t *keyTable) appendKey(dst []byte, id uint32) []byte {
	g := t.groups.At(id)
	n := g.keyLen()
	if n <= inlineKey {
		return append(dst, g.key[:n]...)
	}
	dst = append(dst, g.key[:inlinePrefix]...)
	b := t.blocks.At(g.lastBlock())
	for n -= inlinePrefix; n > 0; n -= blockKey {
		b = t.blocks.At(b.next)
		dst = append(dst, b.data[:min(n, blockKey)]...)
	}
	return dst
}

// equal reports whether a group has this key.
func (t *keyTable) equal(g *group, key []byte) bool {
	switch n := g.keyLen(); {
	case n != len(key):
		return false
	case n <= inlineKey:
		return string(g.key[:n]) == string(key)
	case string(g.key[:inlinePrefix]) != string(key[:inlinePrefix]):
		return false
	}
	b := t.blocks.At(g.lastBlock())
	for key = key[inlinePrefix:]; len(key) > 0; {
		b = t.blocks.At(b.next)
		n := min(len(key), blockKey)
		if string(b.data[:n]) != string(key[:n]) {
			return false
		}
		key = key[n:]
	}
	return true
}

// storeKey writes the key of a new group, and its hash.
func (t *keyTable) storeKey(g *group, key []byte, hash uint64) {
	g.info = uint32(len(key)) << 8
	if len(key) <= inlineKey {
		copy(g.key[:], key)
		return
	}
	rest := key[copy(g.key[:inlinePrefix], key):]
	first := t.blocks.Alloc()
	last, b := first, t.blocks.At(first)
	for rest = rest[copy(b.data[:], rest):]; len(rest) > 0; rest = rest[copy(b.data[:], rest):] {
		last = t.blocks.Alloc()
		b.next = last
		b = t.blocks.At(last)
	}
	b.next = first
	binary.LittleEndian.PutUint32(g.key[inlinePrefix:], uint32(hash))
	binary.LittleEndian.PutUint32(g.key[inlinePrefix+4:], last)
}

// lastBlock is the last block of a long key. The first one is behind it.
func (g *group) lastBlock() uint32 { return binary.LittleEndian.Uint32(g.key[inlinePrefix+4:]) }

// blocksOf is how many blocks a long key has.
func blocksOf(keyLen int) uint32 { return uint32((keyLen - inlinePrefix + blockKey - 1) / blockKey) }
