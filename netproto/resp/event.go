package resp

import (
	"strconv"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

// keptEvents is how many events are remembered for who comes later.
const keptEvents = 100

// Hear implements netproto.Hearer.
func (p *Protocol) Hear(now int64, events []broker.Event) (soon bool) {
	ps := &p.pubsub
	for s := range ps.behind {
		s.catchUp(now)
	}
	for i := range events {
		e := &events[i]
		channel := eventsChannel
		if e.Tail {
			channel = tailPrefix + e.Queue
		} else {
			ps.recent = append(ps.recent[max(0, len(ps.recent)+1-keptEvents):], *e)
		}
		var text []byte
		var m message
		for _, t := range ps.channels.listeners([]byte(channel)) {
			switch {
			case t.leaving, e.Tail && t.channels[channel].database != e.Database:
			case e.Tail && !t.mayListen([]byte(channel)):
				t.leaving = true
				t.peer.Kill()
			case !e.Tail && !knows(&t.pass, e):
			case t.peer.Unsent() > maxTold || t.channels[channel].missed > 0:
				t.miss(channel, max(1, e.Messages))
			default:
				if text == nil {
					text = appendEvent(nil, e)
				}
				t.peer.Send(m.of(t, []byte("message"), []byte(channel), text))
			}
		}
	}
	return len(ps.behind) > 0
}

// knows says whether a user may know of an event.
func knows(pass *access.Pass, e *broker.Event) bool {
	if !e.OfServer() {
		return pass.May(access.Look, []byte(e.Queue))
	}
	return pass.Open() || pass.Account().MayLookAtAll()
}

// Recent returns the newest events for operators that a user may know of, the oldest first, each as
// the JSON that holdfast:events has. The loop's goroutine calls it.
func (p *Protocol) Recent(pass *access.Pass) (events [][]byte) {
	for i := range p.pubsub.recent {
		if e := &p.pubsub.recent[i]; knows(pass, e) {
			events = append(events, appendEvent(nil, e))
		}
	}
	return events
}

// miss notes that messages of a channel were left out for the session.
func (s *session) miss(channel string, messages int) {
	mine := s.channels[channel]
	mine.missed += messages
	s.channels[channel] = mine
	s.protocol.pubsub.behind[s] = struct{}{}
}

// catchUp tells the session what it has missed, once it has read half of what was on its way.
func (s *session) catchUp(now int64) {
	if s.peer.Unsent() > maxTold/2 {
		return
	}
	delete(s.protocol.pubsub.behind, s)
	for channel, mine := range s.channels {
		if mine.missed == 0 {
			continue
		}
		text := appendEvent(nil, &broker.Event{Kind: broker.EventMissed, At: now, Messages: mine.missed})
		mine.missed = 0
		s.channels[channel] = mine
		var m message
		s.peer.Send(m.of(s, []byte("message"), []byte(channel), text))
	}
}

// appendEvent appends an event as JSON.
func appendEvent(dst []byte, e *broker.Event) []byte {
	dst = append(dst, `{"event":"`...)
	dst = append(dst, e.Kind...)
	dst = jsonNumber(append(dst, '"'), "at", e.At)
	if !e.OfServer() && (e.Queue != "" || e.Kind != broker.EventMissed) {
		dst = jsonNumber(dst, "database", int64(e.Database))
		dst = jsonText(dst, "queue", e.Queue)
	}
	if e.Packet {
		dst = jsonText(dst, "id", strconv.FormatInt(int64(e.ID), 10))
		dst = jsonNumber(dst, "priority", int64(e.Priority))
		dst = jsonNumber(dst, "bytes", int64(e.Bytes))
	}
	for _, n := range [...]struct {
		name  string
		value int64
	}{{"attempts", int64(e.Attempts)}, {"age_ms", e.Age}, {"ahead_ms", e.Ahead}, {"messages", int64(e.Messages)}, {"queues", int64(e.Queues)}} {
		if n.value != 0 {
			dst = jsonNumber(dst, n.name, n.value)
		}
	}
	reason := "reason"
	if e.Kind == broker.EventBackground {
		reason = "error"
	}
	for _, t := range [...][2]string{{"consumer", e.Consumer}, {"to", e.To}, {reason, e.Reason}, {"state", e.State}} {
		if t[1] != "" {
			dst = jsonText(dst, t[0], t[1])
		}
	}
	return append(dst, '}')
}

func jsonNumber(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(append(append(dst, `,"`...), name...), `":`...), n, 10)
}

func jsonText(dst []byte, name, text string) []byte {
	return jsonbytes.Append(append(append(append(dst, `,"`...), name...), `":`...), []byte(text))
}
