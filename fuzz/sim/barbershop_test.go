package sim

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/fuzz/model"
	"github.com/holdfast-queue/holdfast/netproto/barbershop"
)

// barbershop is the door of that protocol.
func (w *world) barbershop() *door {
	do := func(client string, words []string) (want any, ends bool) {
		line := strings.TrimSuffix(strings.TrimSuffix(words[1], "\n"), "\r")
		return w.model.Barbershop(client, line)
	}
	p := &barbershop.Protocol{Queue: model.Board, Version: "v", Since: time.UnixMilli(0), Now: func() time.Time { return time.UnixMilli(w.turnAt) }}
	return &door{Protocol: p, draw: (*world).line, request: func(words []string) []byte { return []byte(words[1]) }, reply: answer, do: do, first: []string{"\x16\x03\x01\n", "\x00next\n"}}
}

// item draws the number of an item, and score one that is added.
func (w *world) item() string { return fmt.Sprint(w.r.IntN(12)) }
func (w *world) score() string {
	return pick(w, "0", "1", "1", "2", "3", "2147483648", "4294967292", "4294967293", "4294967294", "4294967295")
}

// line draws a line, with its name before it.
func (w *world) line() []string {
	w.drawn[""] = true // an item has no payload
	name := pick(w, "update", "update", "update", "UPDATE", "UPDATE", "UPDATE", "next", "NEXT", "PEEK", "SCORE", "stats", "INFO")
	line := name
	switch strings.ToLower(name) {
	case "update":
		line += " " + w.item() + " " + w.score()
	case "score":
		line += " " + w.item()
	}
	switch w.r.IntN(16) {
	case 0: // spaces count as one, and not at either end
		line = strings.Repeat(" ", w.r.IntN(3)) + strings.ReplaceAll(line, " ", "   ") + strings.Repeat(" ", w.r.IntN(3))
	case 1:
		line = strings.TrimSuffix(line+pick(w, " 1", " x", "x", "\x00", "\t1"), "1") + pick(w, "", "1")
	case 2:
		name, line = "bad", pick(w, "", "  ", "quit", "PEAK", "Next", "7", "nEXT", "\xff\xfe", "update", "SCORE", "UPDATE 1", "update 1 2 3", "next 1")
	case 3:
		name, line = "bad", pick(w, "update ", "UPDATE ", "SCORE ")+pick(w, "+1", "-1", "1.0", "0x1", "4294967296", "0", "00", "007", "a", "1_0")
		if line[0]|0x20 == 'u' {
			line += pick(w, " 1", " 0", " x")
		}
	case 4:
		name, line = "long", pick(w, "update ", "UPDATE ", "x", " ", "\r")
		line += strings.Repeat(pick(w, "0", " ", "y"), 1020+w.r.IntN(12)-len(line))
	case 5:
		if w.chance(8) {
			name, line = "http", pick(w, "GET / HTTP/1.1", "post /", "Host: x", "UPDATE 1 1 HTTP/1.0")
		}
	}
	return []string{name, line + pick(w, "\n", "\r\n")}
}

// answer reads a reply. That to stats ends with END, and that to INFO has five lines.
func answer(out []byte) (got any, n int) {
	lines := 1
	switch {
	case bytes.HasPrefix(out, []byte("STAT ")):
		lines = 8
	case bytes.HasPrefix(out, []byte("uptime:")):
		lines = 5
	}
	for range lines {
		end := bytes.Index(out[n:], []byte("\r\n"))
		if end < 0 {
			return nil, 0
		}
		n += end + 2
	}
	return string(out[:n-2]), n
}
