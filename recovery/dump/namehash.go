package dump

import "hash/maphash"

// nameHash stands for the name of a queue where a million of them, of up to 256 MiB, are remembered.
// The seeds are secret, so nobody finds two names with one hash, and by chance there are none.
type nameHash [2]uint64

// nameHasher makes hashes that can be compared with those it made itself.
type nameHasher [2]maphash.Seed

func newNameHasher() nameHasher { return nameHasher{maphash.MakeSeed(), maphash.MakeSeed()} }

func (h *nameHasher) of(name []byte) nameHash {
	return nameHash{maphash.Bytes(h[0], name), maphash.Bytes(h[1], name)}
}

// nameSet is a set of names.
type nameSet struct {
	hasher nameHasher
	names  map[nameHash]struct{}
}

func newNameSet() *nameSet {
	return &nameSet{hasher: newNameHasher(), names: make(map[nameHash]struct{})}
}

// add reports whether the name was not there yet.
func (s *nameSet) add(name []byte) bool {
	hash := s.hasher.of(name)
	_, there := s.names[hash]
	s.names[hash] = struct{}{}
	return !there
}
