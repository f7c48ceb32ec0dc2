package sim

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/holdfast-queue/holdfast/fuzz/model"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// pinpriq is the door of that protocol.
func (w *world) pinpriq() *door {
	do := func(client string, words []string) (want any, ends bool) {
		want = w.model.Pinpriq(client, words)
		_, ends = want.(model.Err)
		return want, ends
	}
	return &door{Protocol: pinpriq.Protocol{}, draw: (*world).frame, request: frame, reply: frames, do: do, counts: true,
		first: []string{"POST / HTTP/1.1\r\n\r\n", "P *", "uzi http://", "\x16\x03\x01", "\x00"}}
}

// frame draws a request.
func (w *world) frame() []string {
	queue := pick(w, "q1", "q1", "q1", "q2", "graves", "pins", "pins", model.Board)
	if w.chance(60) {
		queue = pick(w, "", "s1", "h1", ends)
	}
	switch n := w.r.IntN(100); {
	case n < 40:
		key := pick(w, "", "k", "l", fmt.Sprint("k", w.r.IntN(30)), fmt.Sprint("k", w.r.IntN(30)))
		if queue == model.Board {
			key = w.item()
		}
		ttl := pick(w, "0", "0", fmt.Sprint(1+w.r.IntN(3000)), "65535")
		return []string{"push", queue, w.priority(), ttl, key, w.bytes()}
	case n < 55:
		return []string{"pop", queue}
	case n < 68:
		return []string{"subscribe", queue}
	case n < 73:
		return []string{"unsubscribe", queue}
	case n < 98:
		return []string{"ready"}
	case n == 99:
		return []string{"bad", pick(w, "x", "\x7f", "\xff\xff", "Get\x00")}
	}
	return []string{"ready"}
}

// priority draws a priority of a byte.
func (w *world) priority() string { return pick(w, "1", "2", "2", "3", "200", "255") }

// bytes draws a payload of any bytes.
func (w *world) bytes() string {
	switch w.r.IntN(8) {
	case 0:
		p := pick(w, "", string(frame([]string{"pop", "q1"})), "\r\n*1\r\n", "\x00\x01", "\xff\xfe\xfd")
		w.drawn[p] = true
		return p
	case 1:
		return pick(w, "r", w.payload()) // the same one more than once
	}
	return w.payload()
}

// frame is a request as bytes.
func frame(words []string) (b []byte) {
	length := func(s string) { b = binary.BigEndian.AppendUint16(b, uint16(len(s))) }
	switch words[0] {
	case "bad":
		return []byte(words[1])
	case "ready":
		return []byte{0x41}
	case "pop":
		b = []byte{0x50}
	case "subscribe":
		b = []byte{0x73}
	case "unsubscribe":
		b = []byte{0x75}
	case "push":
		b = []byte{0x70}
		length(words[1])
		prio, _ := strconv.ParseUint(words[2], 10, 8)
		ttl, _ := strconv.ParseUint(words[3], 10, 16)
		b = append(binary.BigEndian.AppendUint16(b, uint16(ttl)), byte(prio))
		length(words[4])
		length(words[5])
		return append(b, words[4]+words[5]+words[1]...)
	}
	length(words[1])
	return append(b, words[1]...)
}

// frames reads the packets of a reply or a delivery.
func frames(out []byte) (got any, n int) {
	all, at := []any{}, 2
	number := func(from int) int {
		if len(out) < from+2 {
			return 0
		}
		return int(binary.BigEndian.Uint16(out[from:]))
	}
	for range number(0) {
		key := at + 4
		payload := key + number(at)
		end := payload + number(at+2)
		if len(out) < end || len(out) < key {
			return nil, 0
		}
		all = append(all, model.Shown(string(out[key:payload]), string(out[payload:end])))
		at = end
	}
	if len(out) < at {
		return nil, 0
	}
	return all, at
}
