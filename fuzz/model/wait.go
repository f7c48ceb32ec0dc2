package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Waits is the reply to a command that waits: for packets, or for room. The server makes it again
// when its turn has come, or its time is over, and says so by Again.
type Waits struct{}

// waiting is a command that waits. Nobody changes it.
type waiting struct {
	words []string
	names []string // of the queues
	push  bool
	since int64 // who waits longer has less
	until int64 // on the steady clock; 0: without end

	// Of a take that fills a batch: what until is without that, and its line.
	fills  bool // it has found something, and until is when it takes less
	blocks int64
	line   string
}

// park has a command wait for some queues, for so many milliseconds, 0 without end. In a
// transaction nothing waits.
func (s *Server) park(c call, names []string, push bool, ms int64) any {
	o := s.conns[c.conn]
	switch {
	case c.exec:
		return nil
	case c.again == "":
		s.waits++
		o.wait = &waiting{words: c.words, names: names, push: push, since: s.waits, line: c.line()}
		if ms > 0 {
			o.wait.until = s.steady + ms
		}
		o.wait.blocks = o.wait.until
	case o.wait.fills:
		return s.waitOn(o)
	}
	return Waits{}
}

// seconds reads a timeout, and returns it in milliseconds.
func seconds(text string) int64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x < 0 || x > 1<<53 {
		panic(Err("ERR"))
	}
	return int64(x * 1000)
}

// Again makes the command of a client that waits again, as something has happened to a queue, or
// with "" as its time is over. The error says that it is not its turn.
func (s *Server) Again(client, queue string) (reply any, err error) {
	o := s.conns[client]
	w := o.wait
	switch {
	case w == nil:
		return nil, fmt.Errorf("%s does not wait", client)
	case queue == "" && (w.until == 0 || w.until > s.steady):
		return nil, fmt.Errorf("%.60q of %s ends at %d, and it is %d", w.words, client, w.until, s.steady)
	case queue == "":
		o.wait = nil
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.conns)) {
		if s.finished(queue) { // all are told so, in any order
			break
		}
		if k := s.conns[name].wait; k != nil && k.since < w.since && k.push == w.push && slices.Contains(k.names, queue) && s.served(name, queue) {
			return nil, fmt.Errorf("%.60q of %s is served, and %.60q of %s has waited longer", w.words, client, k.words, name)
		}
	}
	first := s.filler(w.line)
	reply = s.carryOut(call{conn: client, words: w.words, again: queue, filled: w.fills && w.until <= s.steady})
	if reply != (Waits{}) {
		o.wait = nil
	} else if o.wait.fills && !w.fills && first != nil {
		return nil, fmt.Errorf("%.60q of %s fills, and another one of its line does", w.words, client)
	}
	return reply, nil
}

// served says that what a client waits for would be done now.
func (s *Server) served(client, queue string) bool {
	if s.conns[client].wait.words == nil { // it subscribes
		return s.takes() == nil && len(s.selected(queue)) > 0
	}
	c := s.Clone()
	w, is := c.conns[client].wait, s.kind(queue)
	if is != isList && !(w.push && is == isNone) {
		return false
	}
	reply := c.carryOut(call{conn: client, words: w.words, again: queue})
	if list, is := reply.([]any); reply == nil || is && len(list) == 0 { // nothing is there, and it fills until then
		return false
	}
	return reply != (Waits{}) && (took(reply) || reply == Err("CLOSED")) // who is refused is told so later
}

// Waiting counts the clients that wait.
func (s *Server) Waiting() (n int) {
	for _, o := range s.conns {
		if o.wait != nil {
			n++
		}
	}
	return n
}

// Neglected is a client that should have been served, "" if there is none.
func (s *Server) Neglected() string {
	if s.room != All {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(s.conns)) {
		w := s.conns[name].wait
		if w == nil {
			continue
		}
		if w.until != 0 && w.until <= s.steady {
			return fmt.Sprintf("%.60q of %s, whose time is over", w.words, name)
		}
		for _, queue := range w.names {
			if (!w.push || s.firstToPush(queue) == w) && s.served(name, queue) {
				return fmt.Sprintf("%.60q of %s, for which there is something in %s", w.words, name, queue[1:])
			}
			if w.line != "" && s.filler(w.line) == nil && s.Clone().begins(name, queue) {
				return fmt.Sprintf("%.60q of %s, which should fill from %s", w.words, name, queue[1:])
			}
		}
	}
	return ""
}

// firstToPush is the push that has waited longest for a queue, nil if none waits.
func (s *Server) firstToPush(queue string) (first *waiting) {
	for _, o := range s.conns {
		if w := o.wait; w != nil && w.push && w.names[0] == queue && (first == nil || w.since < first.since) {
			first = w
		}
	}
	return first
}

// outOfTurn says that others wait for room in a queue, and come first.
func (s *Server) outOfTurn(queue string, c call) bool {
	first := s.firstToPush(queue)
	return first != nil && (c.again == "" || s.conns[c.conn].wait != first)
}

// bpop is BLPOP, BRPOP, BLMPOP, BRPOPLPUSH and BLMOVE: what they are without B, and a wait.
func bpop(s *Server, c call) any {
	plain, name, last := c, strings.TrimPrefix(c.words[0], "B"), len(c.words)-1
	var names []string
	timeout := c.words[last]
	switch args := c.words[1:last]; name {
	case "LMPOP":
		timeout = c.words[1]
		plain.words = append([]string{name}, c.words[2:]...)
		n := number(c.words[2])
		within(n, 1, int64(last-3))
		names = c.words[3 : 3+n]
	case "LPOP", "RPOP":
		names = args
		plain.words = append(append([]string{"LMPOP", text(int64(len(args)))}, args...), endOf(name))
	default:
		names = args[:1]
		plain.words = append([]string{name}, args...)
	}
	ms := seconds(timeout)
	if c.again != "" && (name == "LMPOP" || strings.HasSuffix(name, "POP")) { // it takes from this one
		rest := plain.words[2+len(names):]
		plain.words = append([]string{"LMPOP", "1", c.again[1:]}, rest...)
	}
	reply := any(nil)
	if name == "LMOVE" || name == "RPOPLPUSH" {
		reply = lmove(s, plain)
	} else if reply = lmpop(s, plain); reply != nil && name != "LMPOP" && took(reply) {
		reply.([]any)[1] = reply.([]any)[1].([]any)[0]
	}
	if _, refused := s.reply.(Err); !refused && Same(nil, reply) == nil { // on a full disk it may wait or be refused
		reply = nil
	}
	if reply != nil {
		return reply
	}
	keys := []string{}
	for _, name := range names {
		keys = append(keys, c.name[:1]+name)
	}
	if !c.exec && !slices.ContainsFunc(keys, func(key string) bool { return !s.finished(key) }) {
		return Err("CLOSED")
	}
	return s.park(c, keys, false, ms)
}
