package content

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
//	" ms" queue u32 | number u64                    what a share of the queue has of its own
//	" m" "control"                                  the control record
//	" m" "flush"                                    what is dropped as a whole
const (
	PacketPrefix  = " q"
	PayloadPrefix = " b"
	QueuePrefix   = " n"
	HeadPrefix    = " k"
	FieldPrefix   = " h"
	ValuePrefix   = " v"
	StatePrefix   = " c" // also of notes
	UniquePrefix  = " u"
	SharePrefix   = " ms" // below " m", so that programs which do not know it pass it over
	ControlKey    = " mcontrol"
	FlushKey      = " mflush"

	PacketKeyLen  = 18
	payloadKeyLen = 14
	queueKeyLen   = 6
	CountersKey   = 1 // behind the key of a queue
	headKeyLen    = 10
	fieldKeyLen   = 18
	StateKeyLen   = 10
	noteKeyLen    = 11
	uniqueKeyLen  = 14
	shareKeyLen   = 15
)

// Each Append appends a key to dst. Each Decode reads one, and its error is an *Unreadable if it is
// none.

// AppendPacketKey appends the key of a packet.
func AppendPacketKey(dst []byte, id PacketID) []byte {
	dst = append(dst, PacketPrefix...)
	dst = binary.BigEndian.AppendUint32(dst, id.Queue)
	dst = binary.BigEndian.AppendUint32(dst, id.Priority)
	return binary.BigEndian.AppendUint64(dst, id.Seq)
}

// DecodePacketKey reads the key of a packet.
func DecodePacketKey(key []byte) (PacketID, error) {
	if len(key) != PacketKeyLen || string(key[:2]) != PacketPrefix {
		return PacketID{}, badKey(key, "a packet")
	}
	return PacketID{
		Queue:    binary.BigEndian.Uint32(key[2:]),
		Priority: binary.BigEndian.Uint32(key[6:]),
		Seq:      binary.BigEndian.Uint64(key[10:]),
	}, nil
}

// AppendPayloadKey leaves the priority out, so that a packet that moves in the order keeps its
// payload where it is.
func AppendPayloadKey(dst []byte, id PacketID) []byte {
	dst = append(dst, PayloadPrefix...)
	dst = binary.BigEndian.AppendUint32(dst, id.Queue)
	return binary.BigEndian.AppendUint64(dst, id.Seq)
}

// DecodePayloadKey reads the key of a large payload.
func DecodePayloadKey(key []byte) (queue uint32, seq uint64, err error) {
	if len(key) != payloadKeyLen || string(key[:2]) != PayloadPrefix {
		return 0, 0, badKey(key, "a payload")
	}
	return binary.BigEndian.Uint32(key[2:]), binary.BigEndian.Uint64(key[6:]), nil
}

// AppendQueueKey appends the key of a queue definition.
func AppendQueueKey(dst []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, QueuePrefix...), id)
}

// DecodeQueueKey reads the key of a definition, or of counters.
func DecodeQueueKey(key []byte) (id uint32, counters bool, err error) {
	counters = len(key) == queueKeyLen+1 && key[queueKeyLen] == CountersKey
	if len(key) != queueKeyLen && !counters || string(key[:2]) != QueuePrefix {
		return 0, false, badKey(key, "a queue or of its counters")
	}
	return binary.BigEndian.Uint32(key[2:]), counters, nil
}

// AppendItemKey appends the key of a head or a field.
func AppendItemKey(dst []byte, v ValueID) []byte {
	if v.IsField {
		return appendItemNumbers(append(dst, FieldPrefix...), v)
	}
	return appendItemNumbers(append(dst, HeadPrefix...), v)
}

// AppendValueKey makes the key of a large value. It lies apart, so that a scan of heads or fields
// does not pass it.
func AppendValueKey(dst []byte, v ValueID) []byte {
	return appendItemNumbers(append(dst, ValuePrefix...), v)
}

func appendItemNumbers(dst []byte, v ValueID) []byte {
	dst = binary.BigEndian.AppendUint64(dst, v.ID)
	if v.IsField {
		dst = binary.BigEndian.AppendUint64(dst, v.Field)
	}
	return dst
}

// DecodeItemKey reads the key of a head or a field.
func DecodeItemKey(key []byte) (ValueID, error) {
	if v, ok := decodeItemNumbers(key, HeadPrefix, FieldPrefix); ok {
		return v, nil
	}
	return ValueID{}, badKey(key, "a head or a field")
}

// DecodeValueKey reads the key of the large value of a head or a field.
func DecodeValueKey(key []byte) (ValueID, error) {
	if v, ok := decodeItemNumbers(key, ValuePrefix, ValuePrefix); ok {
		return v, nil
	}
	return ValueID{}, badKey(key, "a value")
}

// decodeItemNumbers reads the numbers behind the prefix of a head, or of a field.
func decodeItemNumbers(key []byte, head, field string) (v ValueID, ok bool) {
	switch {
	case len(key) == headKeyLen && string(key[:2]) == head:
		return ValueID{ID: binary.BigEndian.Uint64(key[2:])}, true
	case len(key) == fieldKeyLen && string(key[:2]) == field:
		return ValueID{binary.BigEndian.Uint64(key[2:]), binary.BigEndian.Uint64(key[10:]), true}, true
	}
	return v, false
}

// AppendStateKey makes the key of a note, or of the delivery state itself, which is kind 0.
func AppendStateKey(dst []byte, id NoteID) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, StatePrefix...), id.Identity)
	if id.Kind != 0 {
		dst = append(dst, byte(id.Kind))
	}
	return dst
}

// DecodeStateKey reads what AppendStateKey wrote; a note may be of a kind that is not known.
func DecodeStateKey(key []byte) (NoteID, error) {
	switch {
	case len(key) == StateKeyLen && string(key[:2]) == StatePrefix:
		return NoteID{Identity: binary.BigEndian.Uint64(key[2:])}, nil
	case len(key) == noteKeyLen && string(key[:2]) == StatePrefix && key[StateKeyLen] != 0:
		return NoteID{binary.BigEndian.Uint64(key[2:]), NoteKind(key[StateKeyLen])}, nil
	}
	return NoteID{}, badKey(key, "a delivery state or a note")
}

// DescribeKey names what a key is about, for people. It may be any bytes.
func DescribeKey(key []byte) string {
	if id, err := DecodePacketKey(key); err == nil {
		return "packet " + id.String()
	}
	if queue, seq, err := DecodePayloadKey(key); err == nil {
		return fmt.Sprintf("the payload of sequence %d in queue %d", seq, queue)
	}
	if queue, counters, err := DecodeQueueKey(key); counters {
		return fmt.Sprintf("the counters of queue %d", queue)
	} else if err == nil {
		return fmt.Sprintf("queue %d", queue)
	}
	if v, err := DecodeItemKey(key); err == nil {
		return v.String()
	}
	if v, err := DecodeValueKey(key); err == nil {
		return "the value of " + v.String()
	}
	if id, err := DecodeStateKey(key); err == nil {
		return id.String()
	}
	if id, err := DecodeUniqueKey(key); err == nil {
		return id.String()
	}
	if id, err := DecodeShareKey(key); err == nil {
		return id.String()
	}
	if slices.Contains([]string{ControlKey, FlushKey}, string(key)) {
		return "the " + string(key[2:]) + " record"
	}
	return fmt.Sprintf("key %.40q", key)
}

// MaxKey is the length of the longest key, in bytes.
const MaxKey = 19

// FixedKey is a key, in a form that maps take, and, in the last byte, its length.
type FixedKey [MaxKey + 1]byte

// FixedKeyOf returns the form of a key of at most MaxKey bytes.
func FixedKeyOf(key []byte) (k FixedKey) {
	k[MaxKey] = byte(copy(k[:MaxKey], key))
	return k
}

// Bytes returns the key.
func (k *FixedKey) Bytes() []byte { return k[:k[MaxKey]] }
