package loadgen

import (
	"encoding/binary"
	"fmt"
)

// Methods of AMQP 0.9.1 by class and number, as far as a publisher meets them.
const (
	amqpClose        = 10<<16 | 50
	amqpCloseChannel = 20<<16 | 40
	amqpConfirming   = 85<<16 | 11
	amqpAck          = 60<<16 | 80
)

const amqpFrameEnd = 0xCE

// AMQPLogin logs in as guest, declares a quorum queue, and asks for confirms. The server takes all
// of it in one write.
func AMQPLogin(queue string) Protocol {
	arguments := string(amqpText(nil, "x-queue-type")) + "S\x00\x00\x00\x06quorum"
	hello := []byte("AMQP\x00\x00\x09\x01")
	for _, m := range []struct {
		channel, class, method uint16
		fields                 string
	}{
		{0, 10, 11, "\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x0c\x00guest\x00guest\x05en_US"},
		{0, 10, 31, "\x00\x01\x00\x02\x00\x00\x00\x00"}, // one channel, frames of 128 KiB, no heartbeats
		{0, 10, 40, "\x01/\x00\x00"},
		{1, 20, 10, "\x00"},
		{1, 50, 10, "\x00\x00" + string(amqpText(nil, queue)) + "\x02" + string(binary.BigEndian.AppendUint32(nil, uint32(len(arguments)))) + arguments},
		{1, 85, 10, "\x00"},
	} {
		hello = append(hello, amqpMethod(m.channel, m.class, m.method, m.fields)...)
	}
	return &driver{request(string(hello)).all, amqpFrames(func(method uint32, _ []byte, p *Progress) error {
		if method == amqpConfirming {
			p.answer(false)
		}
		return nil
	})}
}

// AMQPPublish publishes persistent messages, after AMQPLogin. A message is answered when the server
// confirms it, in whatever order.
func AMQPPublish(p Packets) Protocol {
	method := amqpMethod(1, 60, 40, "\x00\x00\x00"+string(amqpText(nil, p.Queue))+"\x00")
	header := binary.BigEndian.AppendUint64([]byte("\x00\x3c\x00\x00"), uint64(p.Size))
	begin := amqpFrame(method, 2, 1, string(header)+"\x10\x00\x02")
	begin = binary.BigEndian.AppendUint32(append(begin, 3, 0, 1), uint32(p.Size))

	low, confirmed := uint64(0), [MaxDepth]bool{} // all numbers up to low are confirmed, and which of the next
	return &driver{request(string(begin), p.numbered(), string([]byte{amqpFrameEnd})).all, amqpFrames(func(method uint32, fields []byte, p *Progress) error {
		if method != amqpAck || len(fields) < 9 {
			return fmt.Errorf("the server sent the method %d.%d, expected confirms", method>>16, method&0xFFFF)
		}
		tag := binary.BigEndian.Uint64(fields)
		if tag > low+MaxDepth {
			return fmt.Errorf("the server confirmed message %d, expected one of the next %d after %d", tag, MaxDepth, low)
		}
		first := tag
		if fields[8]&1 != 0 { // all up to the tag
			first = low + 1
		}
		for ; first <= tag; first++ {
			if to := &confirmed[first%MaxDepth]; !*to {
				*to = true
				p.answer(true)
			}
		}
		for ; confirmed[(low+1)%MaxDepth]; low++ {
			confirmed[(low+1)%MaxDepth] = false
		}
		return nil
	})}
}

// amqpFrames hands over the methods that the server sends. A close is an error.
func amqpFrames(take func(method uint32, fields []byte, p *Progress) error) reader {
	return func(dst, src []byte) (_ []byte, p Progress, err error) {
		for {
			const head, most = 7, 1 << 16 // the buffer holds no larger frame
			frame := src[p.Used:]
			if len(frame) < head {
				return dst, p, nil
			}
			size := int(binary.BigEndian.Uint32(frame[3:]))
			if frame[0] != 1 || size < 4 || size >= most-head {
				return dst, p, fmt.Errorf("the server sent %q, expected a method of AMQP", frame[:head])
			}
			if len(frame) <= head+size {
				return dst, p, nil
			}
			method, fields := binary.BigEndian.Uint32(frame[head:]), frame[head+4:head+size]
			if method == amqpClose || method == amqpCloseChannel {
				return dst, p, fmt.Errorf("the server closes with %q", fields)
			}
			if err := take(method, fields, &p); err != nil {
				return dst, p, err
			}
			p.Used += head + size + 1
		}
	}
}

func amqpMethod(channel, class, method uint16, fields string) []byte {
	number := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, class), method)
	return amqpFrame(nil, 1, channel, string(number)+fields)
}

func amqpFrame(dst []byte, kind byte, channel uint16, payload string) []byte {
	dst = binary.BigEndian.AppendUint16(append(dst, kind), channel)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	return append(append(dst, payload...), amqpFrameEnd)
}

// amqpText appends a text of at most 255 bytes.
func amqpText(dst []byte, text string) []byte { return append(append(dst, byte(len(text))), text...) }
