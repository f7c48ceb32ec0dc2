package sim

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/fuzz/model"
	"github.com/holdfast-queue/holdfast/netproto"
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
	db     byte       // that it has selected, as far as is known
	ahead  any        // what the model replies to the first of them already
	parked bool       // the first of them waits
	stalls bool
	hungUp bool
	door   *door // of a small protocol; nil: it speaks the Redis protocol
	fresh  bool  // it has not been served yet
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
	c := &client{name: at.String(), db: '0'}
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
		if words[0] == "SELECT" {
			c.db = '0' + words[1][0] - '0'
		}
		c.sent = append(c.sent, words)
		if c.door != nil {
			b = append(b, c.door.request(words)...)
		} else {
			b = append(b, request(words)...)
		}
	}
	if c != w.looker && len(b) > 0 && w.r.IntN(8) == 0 {
		cut := w.r.IntN(len(b))
		c.later = bytes.Clone(b[cut:])
		b = b[:cut]
	}
	c.wire.Send(b)
}

// local are commands that tell nothing of what is stored.
var local = []string{"MULTI", "DISCARD", "UNWATCH", "SELECT"}

// served has the model carry out what a session has carried out, and compares the replies. Then the
// session has stopped: at a part of a command, or as a command waits.
func (w *world) served(c *client, out []byte, stop netproto.Stop) {
	if w.dead { // a read has failed, and nothing leaves any more
		return
	}
	for len(out) > 0 {
		got, rest, whole := reply(out)
		if !whole || len(c.sent) == 0 {
			w.Fatalf("%s gets %.200q, and waits for %.200q", c.name, out, c.sent)
		}
		words, want := c.sent[0], c.ahead
		c.sent, c.ahead = c.sent[1:], nil
		before := w.model.Next()
		if w.model.Shown(got); want == nil {
			want = w.model.Do(c.name, words)
		}
		for want == (model.More{}) { // where there is nothing to do it does several slices at once
			want = w.model.Do(c.name, words)
		}
		w.judge(c, words, got, want)
		w.replied(c, words, got, out[:len(out)-len(rest)], before)
		out = rest
	}
	switch c.parked = stop == netproto.Blocked; {
	case stop == netproto.Blocked:
		w.Say("%s waits: %.60q", c.name, c.sent[0])
		w.model.Shown(nil)
		if want := w.model.Do(c.name, c.sent[0]); want != (model.Waits{}) {
			w.Fatalf("%s: %.60q waits, want %v\nThe model has\n%s", c.name, c.sent[0], want, w.model.Dump())
		}
	case stop == netproto.Unfinished:
		if c.ahead == nil {
			w.slice(c)
		}
		if c.ahead != (model.More{}) {
			w.Fatalf("%s: %q goes on, want %v", c.name, c.sent[0], c.ahead)
		}
		c.ahead = nil
	}
}

// sliced says that a command is served of which the model may have to carry out a slice.
func (w *world) sliced() bool {
	if w.serving == nil {
		return false
	}
	c := w.serving.client()
	return c.door == nil && c.ahead == nil && len(c.sent) > 0 && model.Sliced(c.sent[0])
}

// slice has the model carry out a slice of a command.
func (w *world) slice(c *client) {
	w.Say("%s: a slice of %.60q", c.name, c.sent[0])
	c.ahead = w.model.Do(c.name, c.sent[0])
}

// again has the model carry out what waits, as its turn has come or its time is over.
func (w *world) again(c *client, queue, out []byte) {
	if w.dead || c.hungUp && len(out) == 0 { // it takes nothing more
		return
	}
	if !c.parked { // it has begun to wait just now
		w.served(c, nil, netproto.Blocked)
	}
	key, before := "", w.model.Next()
	if queue != nil {
		key = w.model.Name(c.name, string(queue))
	}
	got, _, _ := reply(out)
	w.model.Shown(got)
	want, err := w.model.Again(c.name, key)
	if want == (model.Waits{}) && len(out) > 0 && w.sliced() {
		w.slice(w.serving.client()) // it has brought what this one gets
		want, err = w.model.Again(c.name, key)
	}
	if err != nil {
		w.Fatalf("%v\nThe model has\n%s", err, w.model.Dump())
	}
	if len(out) == 0 {
		if want != (model.Waits{}) {
			w.Fatalf("%s: %.60q waits on, want %v\nThe model has\n%s", c.name, c.sent[0], want, w.model.Dump())
		}
		return
	}
	words := c.sent[0]
	c.sent, c.parked = c.sent[1:], false
	w.judge(c, words, got, want)
	w.replied(c, words, got, out, before)
}

// judge compares a reply.
func (w *world) judge(c *client, words []string, got, want any) {
	w.note("%s: %.60q replies %.100q", c.name, words, lazy{got})
	if w.loose != nil {
		w.loose(words, got, want)
	} else if err := model.Same(got, want); err != nil {
		w.Fatalf("%s: %.60q: %v\nThe model has\n%s", c.name, words, err, w.model.Dump())
	}
}

// replied notes a reply, which is to come when its batch is on the disk. before is the next number
// at that time.
func (w *world) replied(c *client, words []string, got any, bytes []byte, before int64) {
	m := made{bytes: slices.Clone(bytes), words: words}
	_, failed := got.(model.Err)
	over := w.stuck && got == nil // a wait may end while a batch waits for room: that tells nothing
	if !failed && !over && got != "QUEUED" && !slices.Contains(local, words[0]) {
		m.changes = w.model.Changes()
	}
	if w.model.Next() > before {
		m.next = w.model.Next()
	}
	w.count(c, words, got)
	c.made = append(c.made, m)
}

// count learns totals, and counts what commands do.
func (w *world) count(c *client, words []string, got any) {
	kind := words[0]
	if e, failed := got.(model.Err); failed {
		code, _, _ := strings.Cut(string(e), " ")
		kind += " " + code
	}
	w.f.did[kind]++
	if _, told := got.([]any); !told || words[0] != "QSTAT" {
		return
	}
	key := w.model.Name(c.name, words[1])
	for name, v := range model.Pairs(got) {
		if n, ok := v.(int64); ok {
			w.model.Counted(key, name, n)
		}
	}
	w.model.Exact(key)
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
			if m.changes > w.onDisk && (!w.dead || w.needsBatch() != "") {
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
