package crash

import (
	"bytes"
	"encoding/binary"
)

// ID names one pushed packet of a run: who pushed it in the upper 16 bits, and a number that rises
// with each push of that client. 0 is no packet.
type ID uint64

const serialBits = 48

func makeID(part int, serial uint64) ID { return ID(uint64(part)<<serialBits | serial) }

func (id ID) part() int      { return int(id >> serialBits) }
func (id ID) serial() uint64 { return uint64(id) & (1<<serialBits - 1) }

// A payload proves itself. It holds its identity, its length, and bytes that follow from the
// identity.
//
//	id u64 | length u32 | filler
const payloadHeader = 12

// appendPayload appends the payload of id, size bytes long, at least payloadHeader.
func appendPayload(dst []byte, id ID, size int) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(id))
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	x := uint64(id)
	for left := size - payloadHeader; left > 0; left -= 8 {
		x = mix(x)
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], x)
		dst = append(dst, b[:min(left, 8)]...)
	}
	return dst
}

// parsePayload returns the identity of a payload, and whether the payload is whole.
func parsePayload(payload []byte) (id ID, whole bool) {
	if len(payload) < payloadHeader {
		return 0, false
	}
	id = ID(binary.BigEndian.Uint64(payload))
	return id, bytes.Equal(payload, appendPayload(nil, id, len(payload)))
}

// mix is one step of the generator splitmix64, whose output depends on every bit of its input.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// keyOf stands for the key of a packet: a key of its own, or one of the few group keys of the run.
// The first group key is the empty one.
type keyOf uint64

const uniqueKey keyOf = 1 << 63

func ownKey(id ID) keyOf { return uniqueKey | keyOf(id) }

func (k keyOf) append(dst []byte) []byte {
	switch {
	case k&uniqueKey != 0:
		return binary.BigEndian.AppendUint64(dst, uint64(k))
	case k == 0:
		return dst
	default:
		return append(append(dst, "group-"...), byte(k)+'a')
	}
}
