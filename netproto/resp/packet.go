package resp

import (
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// mapWriter appends a map, or looks how many pairs it has: the head comes first and says that.
type mapWriter struct {
	dst   []byte
	resp3 bool
	looks bool
	pairs int
}

// appendMap appends the map of the pairs that fill brings. It calls fill twice.
func appendMap(dst []byte, resp3 bool, fill func(w *mapWriter)) []byte {
	w := mapWriter{dst: dst, resp3: resp3, looks: true}
	fill(&w)
	w.looks = false
	w.dst = appendMapHead(dst, resp3, w.pairs)
	fill(&w)
	return w.dst
}

// appendMapHead begins a map of n pairs: one in RESP3, an array of names and values in RESP2.
func appendMapHead(dst []byte, resp3 bool, n int) []byte {
	if resp3 {
		return appendHead(dst, '%', int64(n))
	}
	return appendHead(dst, '*', int64(2*n))
}

// pair begins a pair whose value the caller appends. It returns false if that is not wanted.
func (w *mapWriter) pair(name string, applies bool) bool {
	switch {
	case !applies:
		return false
	case w.looks:
		w.pairs++
		return false
	}
	w.dst = appendBulk(w.dst, name)
	return true
}

func (w *mapWriter) number(name string, n int64, applies bool) {
	if w.pair(name, applies) {
		w.dst = appendHead(w.dst, ':', n)
	}
}

func (w *mapWriter) text(name, text string, applies bool) {
	if w.pair(name, applies) {
		w.dst = appendBulk(w.dst, text)
	}
}

func (w *mapWriter) bytes(name string, text []byte, applies bool) {
	if w.pair(name, applies) {
		w.dst = appendBulk(w.dst, text)
	}
}

// appendPacket appends a packet as a map of its fields. One that was taken for good is in no state.
func appendPacket(dst []byte, resp3 bool, form replyForm, p *broker.Packet, d *broker.Detail) []byte {
	return appendMap(dst, resp3, func(w *mapWriter) {
		if w.pair("id", true) {
			var text [maxIntText]byte
			w.dst = appendBulk(w.dst, appendInt(text[:0], int64(d.ID)))
		}
		w.text("queue", d.Queue, true)
		w.bytes("payload", p.Payload, true)
		w.number("priority", int64(d.Priority), true)
		w.number("attempt", int64(d.Attempts), d.Attempts > 0)
		w.bytes("key", p.Key, p.Key != nil)
		w.tags(p.Tags)
		w.text("producer", p.Producer, p.Producer != "")
		w.bytes("unique", d.Unique, len(d.Unique) > 0)
		w.number("enqueued", p.EnqueuedAt, p.EnqueuedAt != 0)
		w.number("expires", p.Expiry, p.Expiry != 0)
		w.number("not-before", d.NotBefore, d.NotBefore != 0)
		w.number("token", d.Token, d.Token != 0)
		w.number("lease-end", d.LeaseEnd, d.LeaseEnd != 0)
		w.text("consumer", d.Consumer, d.Consumer != "")
		w.text("state", d.State.String(), form != formPopped)
		w.bytes("reason", d.Reason, len(d.Reason) > 0)
		if len(d.Progress) > 0 {
			w.number("progress", int64(d.Progress[0]), true)
			w.bytes("progress-text", d.Progress[1:], len(d.Progress) > 1)
		}
		w.text("origin", d.Origin, d.Origin != "")
		if form == formPacket {
			w.number("first-claim", d.FirstClaim, d.FirstClaim != 0)
			w.number("last-claim", d.LastClaim, d.LastClaim != 0)
			w.text("why", why(p, d), true)
		}
	})
}

func (w *mapWriter) tags(tags []broker.PacketTag) {
	if !w.pair("tags", len(tags) > 0) {
		return
	}
	w.dst = appendMapHead(w.dst, w.resp3, len(tags))
	for _, t := range tags {
		w.dst = appendBulk(appendBulk(w.dst, t.Name), t.Value)
	}
}

// why says in a sentence why a packet is not delivered now.
func why(p *broker.Packet, d *broker.Detail) string {
	switch d.State {
	case broker.Delayed:
		return "delayed until " + moment(d.NotBefore)
	case broker.Claimed:
		return whyClaimed(p, d)
	case broker.Dead:
		text := fmt.Sprintf("dead after %s", counted(d.Attempts, "attempt"))
		if len(d.Reason) > 0 {
			text += fmt.Sprintf(", because: %s", d.Reason)
		}
		if d.Gone > 0 {
			text += "; it stays until " + moment(d.Gone)
		}
		return text
	case broker.Done:
		return fmt.Sprintf("done: %q acknowledged it; it stays until %s", d.Consumer, moment(p.Expiry))
	case broker.Damaged:
		return "damaged: it cannot be read from the disk, and is left out until the next start; the log says why"
	}
	switch {
	case d.Priority == 0:
		return "of priority 0: it is delivered only together with another packet of its key"
	case d.Paused:
		return "the queue is paused: it gives nothing until pause-out is off"
	case d.Behind > 0:
		return fmt.Sprintf("behind %s", counted(d.Behind, "other packet"))
	}
	return "next in line"
}

func whyClaimed(p *broker.Packet, d *broker.Detail) string {
	text := fmt.Sprintf("claimed by %q", d.Consumer)
	if d.LeaseEnd == 0 {
		return text + " without end"
	}
	text += " until " + moment(d.LeaseEnd)
	if p.Expiry != 0 && p.Expiry <= d.LeaseEnd {
		text += "; then it is gone, because it expires before: " + moment(p.Expiry)
	}
	return text
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// moment is a time for people.
func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
