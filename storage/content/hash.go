package content

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
)

// hashSeed makes the hashes of small payloads differ in each process: so nobody outside can make
// two payloads collide.
var hashSeed = maphash.MakeSeed()

// ValueHash is the hash by which an index finds packets without a key by their payload. It is never
// 0, which stands for unknown. That of a large payload (IsLarge) is stored with the packet, so it
// is the same in every process and costs a SHA-256. That of any other is good for this process
// only.
func ValueHash(payload []byte) uint64 {
	var h uint64
	if IsLarge(len(payload)) {
		sum := sha256.Sum256(payload)
		h = binary.BigEndian.Uint64(sum[:])
	} else {
		h = maphash.Bytes(hashSeed, payload)
	}
	return max(h, 1)
}
