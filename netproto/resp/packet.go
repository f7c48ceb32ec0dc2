package resp

import (
	"bytes"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// replyForm says how packets become a reply.
type replyForm uint8

const (
	formBulk  replyForm = iota // the packet as a bulk; none: null
	formArray                  // an array of bulks; none: the null array
	formBulks                  // the bulks alone

	// The packets of these have details.
	formPackets // an array of maps; none: the empty array
	formPopped  // the same, of packets that are in no queue any more
	formFields  // each packet as a map; none: nothing at all
	formPacket  // the packet as a map that says why it is not delivered; none: the null array
)

// sizeOf is about how many bytes the bulks of packets have.
func sizeOf(packets []broker.Packet) (size int) {
	const head = 16
	for i := range packets {
		size += head + len(packets[i].Payload)
	}
	return size
}

// packets replies with what a call has found.
func (s *session) packets(form replyForm, f broker.Found, err error) error {
	if err != nil {
		return err
	}
	n := len(f.Packets)
	switch {
	case form == formBulk && n == 0:
		s.null()
	case n == 0 && (form == formArray || form == formPacket):
		s.nullArray()
	case form == formArray, form == formPackets, form == formPopped:
		s.array(n)
	}
	if size := sizeOf(f.Packets); n > 1 || size > netproto.MaxReplies { // a long payload is not to be moved again by what follows it
		s.peer.Out = slices.Grow(s.peer.Out, size+netproto.MaxReplies)
	}
	for i := range f.Packets {
		if form >= formPackets {
			s.packet(form, &f.Packets[i], &f.Details[i])
		} else {
			s.peer.Out = wire.AppendBulk(s.peer.Out, f.Packets[i].Payload)
		}
	}
	return nil
}

// newMap begins a map whose pairs are not known yet. There is one at a time.
func (s *session) newMap() *mapWriter {
	w := &s.protocol.fields
	w.dst, w.pairs = w.dst[:0], 0
	return w
}

// endMap replies with the map. As many pairs as more says follow.
func (s *session) endMap(w *mapWriter, more int) {
	s.mapHeader(w.pairs + more)
	if s.fits(len(w.dst)) {
		s.peer.Out = append(s.peer.Out, w.dst...)
	}
}

// packet replies with a packet as a map of its fields. One that was taken for good is in no state.
func (s *session) packet(form replyForm, p *broker.Packet, d *broker.Detail) {
	// What stands behind the payload is small: it is written first, as the head of the map says how
	// many pairs there are.
	w := s.newMap()
	appendNumber(w, "priority", int64(d.Priority), true)
	appendNumber(w, "attempt", int64(d.Attempts), d.Attempts > 0)
	appendText(w, "key", p.Key, p.Key != nil)
	if w.pair("tags", len(p.Tags) > 0) {
		w.dst = wire.AppendBegin(w.dst, s.resp3, '%', len(p.Tags), 2*len(p.Tags))
		for _, t := range p.Tags {
			w.dst = wire.AppendBulk(wire.AppendBulk(w.dst, t.Name), t.Value)
		}
	}
	appendText(w, "producer", p.Producer, p.Producer != "")
	appendNumber(w, "lease", p.Lease, p.Lease != 0)
	appendText(w, "meta", p.Meta, len(p.Meta) > 0)
	appendText(w, "unique", d.Unique, len(d.Unique) > 0)
	appendNumber(w, "enqueued", p.EnqueuedAt, p.EnqueuedAt != 0)
	appendNumber(w, "expires", p.Expiry, p.Expiry != 0)
	appendNumber(w, "not-before", d.NotBefore, d.NotBefore != 0)
	appendNumber(w, "token", d.Token, d.Token != 0)
	appendNumber(w, "lease-end", d.LeaseEnd, d.LeaseEnd != 0)
	appendNumber(w, "cancelled", 1, d.Cancelled)
	appendText(w, "consumer", d.Consumer, d.Consumer != "")
	appendText(w, "state", d.State.String(), form != formPopped)
	appendText(w, "reason", d.Reason, len(d.Reason) > 0)
	if form != formPopped && d.State != broker.Claimed { // who takes it has the reason
		class := errorClass(d.Reason)
		appendText(w, "last-error-class", class, len(class) > 0)
	}
	appendNumber(w, "died", d.Died, d.Died != 0)
	if len(d.Progress) > 0 {
		appendNumber(w, "progress", int64(d.Progress[0]), true)
		appendText(w, "progress-text", d.Progress[1:], len(d.Progress) > 1)
	}
	appendText(w, "origin", d.Origin, d.Origin != "")
	if form == formPacket {
		appendNumber(w, "first-claim", d.FirstClaim, d.FirstClaim != 0)
		appendNumber(w, "last-claim", d.LastClaim, d.LastClaim != 0)
		appendNumber(w, "behind", int64(d.Behind), d.Behind >= 0)
		appendText(w, "why", why(p, d), true)
	}
	pairs := 3 + w.pairs
	var id [wire.MaxIntText]byte
	out := wire.AppendBegin(s.peer.Out, s.resp3, '%', pairs, 2*pairs)
	out = wire.AppendBulk(wire.AppendBulk(out, "id"), appendInt(id[:0], int64(d.ID)))
	out = wire.AppendBulk(wire.AppendBulk(out, "queue"), d.Queue)
	out = wire.AppendBulk(wire.AppendBulk(out, "payload"), p.Payload)
	s.peer.Out = append(out, w.dst...)
}

// maxErrorClass is the most bytes of one.
const maxErrorClass = 64

// errorClass is the kind of error that a reason tells of: what most programs write before a colon.
func errorClass(reason []byte) []byte {
	if bytes.HasPrefix(reason, []byte("dead at attempt ")) {
		_, reason, _ = bytes.Cut(reason, []byte(": "))
	}
	if end := bytes.IndexAny(reason, ":\r\n"); end >= 0 {
		reason = reason[:end]
	}
	for reason = bytes.TrimSpace(reason); len(reason) > maxErrorClass; {
		_, last := utf8.DecodeLastRune(reason)
		reason = reason[:len(reason)-last]
	}
	return bytes.TrimSpace(reason)
}

// why says in a sentence why a packet is not delivered now.
func why(p *broker.Packet, d *broker.Detail) string {
	switch d.State {
	case broker.Delayed:
		return "delayed until " + moment(d.NotBefore)
	case broker.Claimed:
		return whyClaimed(p, d)
	case broker.Dead:
		text := fmt.Sprintf("dead after %s", broker.Counted(d.Attempts, "attempt"))
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
	case d.HeldBack != "":
		return d.HeldBack
	case d.Behind > 0:
		return fmt.Sprintf("behind %s", broker.Counted(d.Behind, "other packet"))
	}
	return "next in line"
}

func whyClaimed(p *broker.Packet, d *broker.Detail) string {
	text, end := fmt.Sprintf("claimed by %q", d.Consumer), " without end"
	if d.LeaseEnd != 0 {
		end = " until " + moment(d.LeaseEnd)
	}
	text += end
	if d.Cancelled {
		return text + "; it was cancelled, and is gone when the claim ends"
	}
	if d.LeaseEnd != 0 && p.Expiry != 0 && p.Expiry <= d.LeaseEnd {
		text += "; then it is gone, because it expires before: " + moment(p.Expiry)
	}
	return text
}

// moment is a time for people.
func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
