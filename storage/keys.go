package storage

import (
	"encoding/binary"
	"fmt"
)

// Every key begins with a space byte and a letter. Integers are big endian, so the order of the
// bytes is the order of delivery.
//
//	" q" queue u32 | priority u32 | sequence u64    a packet
//	" b" queue u32 | sequence u64                   the payload of a large packet
//	" n" queue u32                                  a queue definition
//	" m" "control"                                  the control record
//	" m" "redo"                                     deletes of the last batch that are still to be carried out
//	" m" "load"                                     how far a load under way has come
//	" m" "filler"                                   nothing: fills a memory table up
const (
	packetPrefix  = " q"
	payloadPrefix = " b"
	queuePrefix   = " n"
	controlKey    = " mcontrol"
	redoKey       = " mredo"
	loadKey       = " mload"
	fillerKey     = " mfiller"

	packetKeyLen  = 18
	payloadKeyLen = 14
	queueKeyLen   = 6
)

func appendPacketKey(dst []byte, id PacketID) []byte {
	dst = append(dst, packetPrefix...)
	dst = binary.BigEndian.AppendUint32(dst, id.Queue)
	dst = binary.BigEndian.AppendUint32(dst, id.Priority)
	return binary.BigEndian.AppendUint64(dst, id.Seq)
}

func decodePacketKey(key []byte) (PacketID, error) {
	if len(key) != packetKeyLen || string(key[:2]) != packetPrefix {
		return PacketID{}, fmt.Errorf("%w: %x is not the key of a packet", ErrDamaged, key)
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
		return 0, 0, fmt.Errorf("%w: %x is not the key of a payload", ErrDamaged, key)
	}
	return binary.BigEndian.Uint32(key[2:]), binary.BigEndian.Uint64(key[6:]), nil
}

func appendQueueKey(dst []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, queuePrefix...), id)
}

func decodeQueueKey(key []byte) (uint32, error) {
	if len(key) != queueKeyLen || string(key[:2]) != queuePrefix {
		return 0, fmt.Errorf("%w: %x is not the key of a queue", ErrDamaged, key)
	}
	return binary.BigEndian.Uint32(key[2:]), nil
}

// describeKey names what a key is about, for people. It may be any bytes.
func describeKey(key []byte) string {
	if id, err := decodePacketKey(key); err == nil {
		return "packet " + id.String()
	}
	if queue, seq, err := decodePayloadKey(key); err == nil {
		return fmt.Sprintf("the payload of sequence %d in queue %d", seq, queue)
	}
	if queue, err := decodeQueueKey(key); err == nil {
		return fmt.Sprintf("queue %d", queue)
	}
	switch string(key) {
	case controlKey:
		return "the control record"
	case redoKey:
		return "the redo record"
	case loadKey:
		return "the load record"
	}
	return fmt.Sprintf("key %.40q", key)
}
