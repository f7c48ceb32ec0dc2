package crash

import (
	"strconv"
	"strings"
)

// replyError is the text of an error reply.
type replyError string

// parseReply reads the first reply of RESP2: a string, an int64, a replyError, a []any, or nil.
func parseReply(reply string) (v any, rest string) {
	head, rest, _ := strings.Cut(reply, "\r\n")
	n, _ := strconv.ParseInt(head[1:], 10, 64)
	switch {
	case head[0] == '+':
		return head[1:], rest
	case head[0] == '-':
		return replyError(head[1:]), rest
	case head[0] == ':':
		return n, rest
	case n < 0:
		return nil, rest
	case head[0] == '$':
		return rest[:n], rest[n+2:]
	}
	all := make([]any, n)
	for i := range all {
		all[i], rest = parseReply(rest)
	}
	return all, rest
}

// pairs reads a map, which is an array of names and values.
func pairs(v any) map[string]any {
	all := map[string]any{}
	list, _ := v.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		name, _ := list[i].(string)
		all[name] = list[i+1]
	}
	return all
}

// shownTask is a packet of a work queue as a reply shows it. What the reply leaves out is zero.
type shownTask struct {
	id                         ID // by the payload
	whole                      bool
	name                       string // the packet's id
	queue, key, state, unique  string
	tags                       tags
	priority, attempt          int64
	token, leaseEnd, notBefore int64
	bytes                      int64 // of key and payload
	progress, expires          int64
	reason, origin             string
	cancelled                  bool
}

// shownTasks reads an array of packets.
func shownTasks(v any) []shownTask {
	var all []shownTask
	list, _ := v.([]any)
	for _, of := range list {
		fields := pairs(of)
		text := func(name string) string { s, _ := fields[name].(string); return s }
		number := func(name string) int64 { n, _ := fields[name].(int64); return n }
		s := shownTask{
			name: text("id"), queue: text("queue"), key: text("key"), state: text("state"), unique: text("unique"), tags: shownTags(fields["tags"]),
			priority: number("priority"), attempt: number("attempt"),
			token: number("token"), leaseEnd: number("lease-end"), notBefore: number("not-before"),
			progress: number("progress"), expires: number("expires"), reason: text("reason"), origin: text("origin"),
			cancelled: number("cancelled") == 1,
		}
		s.bytes = int64(len(s.key) + len(text("payload")))
		s.id, s.whole = parsePayload([]byte(text("payload")))
		all = append(all, s)
	}
	return all
}

// dead says that the packet is dead, or has moved to the dead-letter queue.
func (s *shownTask) dead() bool { return s.state == "dead" || s.queue == deadJobs }

// before says that the packet is delivered before another one of its queue. The ids, though opaque
// to clients, rise with each push.
func (s *shownTask) before(o *shownTask) bool {
	if s.priority != o.priority {
		return s.priority < o.priority
	}
	a, _ := strconv.ParseInt(s.name, 10, 64)
	b, _ := strconv.ParseInt(o.name, 10, 64)
	return a < b
}
