package sim

import (
	"bytes"
	"net/netip"
	"strings"

	"github.com/holdfast-queue/holdfast/fuzz/model"
	"github.com/holdfast-queue/holdfast/netproto/inmemory"
)

// client is a connection and its client.
type client struct {
	name   string // its address
	wire   *inmemory.Wire
	sent   [][]string // commands that were not carried out yet
	made   []made     // replies that have not come yet
	got    []byte     // of the next one
	later  []byte     // of a request, the rest of which is sent later
	stalls bool
	hungUp bool
}

// made is a reply that a server has made.
type made struct {
	bytes   []byte
	words   []string
	changes int   // of the model
	next    int64 // the numbers below this one may be told by it; 0: none
}

// connect makes a client.
func (w *world) connect() *client {
	w.ports++
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), w.ports)
	c := &client{name: at.String()}
	w.clients[c.name] = c
	var err error
	c.wire, err = inmemory.Connect(w.server, at)
	w.must("a connection", err)
	return c
}

// send sends commands, as a whole or the last one in two parts.
func (w *world) send(c *client, commands [][]string) {
	b := c.later
	c.later = nil
	for _, words := range commands {
		w.f.commands++
		w.Say("%s sends %.80q", c.name, words)
		c.sent = append(c.sent, words)
		b = append(b, request(words)...)
	}
	if c != w.looker && len(b) > 0 && w.r.IntN(8) == 0 {
		cut := w.r.IntN(len(b))
		c.later = bytes.Clone(b[cut:])
		b = b[:cut]
	}
	c.wire.Send(b)
}

// served has the model carry out what a session has carried out, and compares the replies.
func (w *world) served(c *client, out []byte, unfinished bool) {
	if w.dead { // a read has failed, and nothing leaves any more
		return
	}
	for len(out) > 0 {
		got, rest, whole := reply(out)
		if !whole || len(c.sent) == 0 {
			w.Fatalf("%s gets %.200q, and waits for %.200q", c.name, out, c.sent)
		}
		words := c.sent[0]
		c.sent = c.sent[1:]
		before := w.model.Next()
		want := w.model.Do(c.name, words)
		for want == (model.More{}) { // where there is nothing to do it does several slices at once
			want = w.model.Do(c.name, words)
		}
		w.note("%s: %.60q replies %.100q", c.name, words, lazy{got})
		if w.loose != nil {
			w.loose(words, got, want)
		} else if err := model.Same(got, want); err != nil {
			w.Fatalf("%s: %q: %v\nThe model has\n%s", c.name, words, err, w.model.Dump())
		}
		m := made{bytes: bytes.Clone(out[:len(out)-len(rest)]), words: words}
		if _, failed := got.(model.Err); !failed && words[0] != "MULTI" && got != "QUEUED" {
			m.changes = w.model.Changes()
		}
		if w.model.Next() > before {
			m.next = w.model.Next()
		}
		w.count(words, got)
		c.made = append(c.made, m)
		out = rest
	}
	if unfinished {
		w.Say("%s: a slice of %.60q", c.name, c.sent[0])
		if want, more := w.model.Do(c.name, c.sent[0]).(model.More); !more {
			w.Fatalf("%s: %q goes on, want %v", c.name, c.sent[0], want)
		}
	}
}

// count learns totals, and counts what commands do.
func (w *world) count(words []string, got any) {
	kind := words[0]
	if e, failed := got.(model.Err); failed {
		code, _, _ := strings.Cut(string(e), " ")
		kind += " " + code
	}
	w.f.did[kind]++
	if _, told := got.([]any); !told || words[0] != "QSTAT" {
		return
	}
	for name, v := range model.Pairs(got) {
		if n, ok := v.(int64); ok {
			w.model.Counted(words[1], name, n)
		}
	}
	w.model.Exact(words[1])
}

// collect has clients take what has come. All of it must be on disk.
func (w *world) collect() {
	for _, c := range w.all() {
		c.got = append(c.got, c.wire.Take()...)
		for len(c.made) > 0 && len(c.got) >= len(c.made[0].bytes) {
			m := c.made[0]
			if !bytes.HasPrefix(c.got, m.bytes) {
				w.Fatalf("%s gets %.200q, want %.200q", c.name, c.got, m.bytes)
			}
			if m.changes > w.onDisk {
				w.Fatalf("%s: the reply to %.100q came before its batch", c.name, m.words)
			}
			c.made, c.got = c.made[1:], c.got[len(m.bytes):]
			w.told = max(w.told, m.next)
		}
		if c.wire.Closed() {
			w.note("%s is closed", c.name)
			delete(w.clients, c.name)
		}
	}
}
