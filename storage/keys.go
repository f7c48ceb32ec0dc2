package storage

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Every key begins with a space byte and a letter. Integers are big endian, so the order of the
// bytes is the order of delivery.
//
//	" q" queue u32 | priority u32 | sequence u64    a packet
//	" b" queue u32 | sequence u64                   the payload of a large packet
//	" n" queue u32                                  a queue definition
//	" n" queue u32 | 1 u8                           the counters of that queue
//	" k" head u64                                   a head: a string, or a hash without its fields
//	" h" head u64 | field u64                       a field of a hash
//	" v" as after " k" or " h"                     the large value of that head or field
//	" c" identity u64                               a delivery state
//	" c" identity u64 | kind u8                     a note that goes with it
//	" u" queue u32 | identity u64                   the id of a unique push
//	" m" "control"                                  the control record
//	" m" "flush"                                    what is dropped as a whole
const (
	packetPrefix  = " q"
	payloadPrefix = " b"
	queuePrefix   = " n"
	headPrefix    = " k"
	fieldPrefix   = " h"
	valuePrefix   = " v"
	statePrefix   = " c" // also of notes
	uniquePrefix  = " u"
	controlKey    = " mcontrol"
	flushKey      = " mflush"

	packetKeyLen  = 18
	payloadKeyLen = 14
	queueKeyLen   = 6
	countersKey   = 1 // behind the key of a queue
	headKeyLen    = 10
	fieldKeyLen   = 18
	stateKeyLen   = 10
	noteKeyLen    = 11
	uniqueKeyLen  = 14
)

func appendPacketKey(dst []byte, id PacketID) []byte {
	dst = append(dst, packetPrefix...)
	dst = binary.BigEndian.AppendUint32(dst, id.Queue)
	dst = binary.BigEndian.AppendUint32(dst, id.Priority)
	return binary.BigEndian.AppendUint64(dst, id.Seq)
}

func decodePacketKey(key []byte) (PacketID, error) {
	if len(key) != packetKeyLen || string(key[:2]) != packetPrefix {
		return PacketID{}, badKey(key, "a packet")
	}
	return PacketID{
		Queue:    binary.BigEndian.Uint32(key[2:]),
		Priority: binary.BigEndian.Uint32(key[6:]),
		Seq:      binary.BigEndian.Uint64(key[10:]),
	}, nil
}

// appendPayloadKey leaves the priority out, so that a packet that moves in the order keeps its
// payload where it is.
func appendPayloadKey(dst []byte, id PacketID) []byte {
	dst = append(dst, payloadPrefix...)
	dst = binary.BigEndian.AppendUint32(dst, id.Queue)
	return binary.BigEndian.AppendUint64(dst, id.Seq)
}

func decodePayloadKey(key []byte) (queue uint32, seq uint64, err error) {
	if len(key) != payloadKeyLen || string(key[:2]) != payloadPrefix {
		return 0, 0, badKey(key, "a payload")
	}
	return binary.BigEndian.Uint32(key[2:]), binary.BigEndian.Uint64(key[6:]), nil
}

func appendQueueKey(dst []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, queuePrefix...), id)
}

// decodeQueueKey reads the key of a definition, or of counters.
func decodeQueueKey(key []byte) (id uint32, counters bool, err error) {
	counters = len(key) == queueKeyLen+1 && key[queueKeyLen] == countersKey
	if len(key) != queueKeyLen && !counters || string(key[:2]) != queuePrefix {
		return 0, false, badKey(key, "a queue or of its counters")
	}
	return binary.BigEndian.Uint32(key[2:]), counters, nil
}

func appendItemKey(dst []byte, v ValueID) []byte {
	if v.IsField {
		return appendItemNumbers(append(dst, fieldPrefix...), v)
	}
	return appendItemNumbers(append(dst, headPrefix...), v)
}

// appendValueKey makes the key of a large value. It lies apart, so that a scan of heads or fields
// does not pass it.
func appendValueKey(dst []byte, v ValueID) []byte {
	return appendItemNumbers(append(dst, valuePrefix...), v)
}

func appendItemNumbers(dst []byte, v ValueID) []byte {
	dst = binary.BigEndian.AppendUint64(dst, v.ID)
	if v.IsField {
		dst = binary.BigEndian.AppendUint64(dst, v.Field)
	}
	return dst
}

func decodeItemKey(key []byte) (ValueID, error) {
	if v, ok := decodeItemNumbers(key, headPrefix, fieldPrefix); ok {
		return v, nil
	}
	return ValueID{}, badKey(key, "a head or a field")
}

func decodeValueKey(key []byte) (ValueID, error) {
	if v, ok := decodeItemNumbers(key, valuePrefix, valuePrefix); ok {
		return v, nil
	}
	return ValueID{}, badKey(key, "a value")
}

// decodeItemNumbers reads the numbers behind the prefix of a head, or behind that of a field.
func decodeItemNumbers(key []byte, head, field string) (v ValueID, ok bool) {
	switch {
	case len(key) == headKeyLen && string(key[:2]) == head:
		return ValueID{ID: binary.BigEndian.Uint64(key[2:])}, true
	case len(key) == fieldKeyLen && string(key[:2]) == field:
		return ValueID{binary.BigEndian.Uint64(key[2:]), binary.BigEndian.Uint64(key[10:]), true}, true
	}
	return v, false
}

// appendStateKey makes the key of a note, or of the delivery state itself, which is kind 0.
func appendStateKey(dst []byte, id NoteID) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, statePrefix...), id.Identity)
	if id.Kind != 0 {
		dst = append(dst, byte(id.Kind))
	}
	return dst
}

// decodeStateKey reads what appendStateKey wrote; a note may be of a kind that is not known.
func decodeStateKey(key []byte) (NoteID, error) {
	switch {
	case len(key) == stateKeyLen && string(key[:2]) == statePrefix:
		return NoteID{Identity: binary.BigEndian.Uint64(key[2:])}, nil
	case len(key) == noteKeyLen && string(key[:2]) == statePrefix && key[stateKeyLen] != 0:
		return NoteID{binary.BigEndian.Uint64(key[2:]), NoteKind(key[stateKeyLen])}, nil
	}
	return NoteID{}, badKey(key, "a delivery state or a note")
}

// describeKey names what a key is about, for people. It may be any bytes.
func describeKey(key []byte) string {
	if id, err := decodePacketKey(key); err == nil {
		return "packet " + id.String()
	}
	if queue, seq, err := decodePayloadKey(key); err == nil {
		return fmt.Sprintf("the payload of sequence %d in queue %d", seq, queue)
	}
	if queue, counters, err := decodeQueueKey(key); counters {
		return fmt.Sprintf("the counters of queue %d", queue)
	} else if err == nil {
		return fmt.Sprintf("queue %d", queue)
	}
	if v, err := decodeItemKey(key); err == nil {
		return v.String()
	}
	if v, err := decodeValueKey(key); err == nil {
		return "the value of " + v.String()
	}
	if id, err := decodeStateKey(key); err == nil {
		return id.String()
	}
	if id, err := decodeUniqueKey(key); err == nil {
		return id.String()
	}
	if slices.Contains([]string{controlKey, flushKey}, string(key)) {
		return "the " + string(key[2:]) + " record"
	}
	return fmt.Sprintf("key %.40q", key)
}

// maxKey is the length of the longest key, in bytes.
const maxKey = 19

// fixedKey is a key, in a form that maps take, and, in the last byte, its length.
type fixedKey [maxKey + 1]byte

func fixedKeyOf(key []byte) (k fixedKey) {
	k[maxKey] = byte(copy(k[:maxKey], key))
	return k
}

func (k *fixedKey) bytes() []byte { return k[:k[maxKey]] }
