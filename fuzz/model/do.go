package model

import (
	"slices"
	"strconv"
	"strings"
)

// conn is what a server knows of a connection.
type conn struct {
	multi  bool
	queued [][]string
	bulk   *bulk // the command that goes on in slices
}

// More is the reply to a command of which a slice was done. It is done again.
type More struct{}

// verb carries out a command.
type verb func(s *Server, c call) any

// call is a command of a client.
type call struct {
	conn    string // its address
	words   []string
	name    string // of the queue
	options map[string]string
	tags    Map      // of a push
	filters []filter // of a take
}

// verbs are the commands that there are rules for.
var verbs = map[string]verb{
	"QPUSH": qpush, "QMPUSH": qmpush, "QCLAIM": qclaim, "QPOP": qpop,
	"QACK": qack, "QNACK": qnack, "QEXTEND": qextend, "QCANCEL": qcancel, "QDEL": qdel,
	"QREDRIVE": qredrive, "QSET": qset, "QPAUSE": qpause, "QCLOSE": qclose, "QDROP": qdrop, "QSHARE": qshare, "QSHARES": qshares,
	"SET": set, "GET": get, "DEL": del,
	"QLEN": qlen, "QSTAT": qstat, "QSHOW": qshow, "QLIST": qlist, "QPEEK": qpeek, "QGET": qget,
}

// Rules are the names of the commands that Do knows.
func Rules() (names []string) {
	for name := range verbs {
		names = append(names, name)
	}
	slices.Sort(names)
	return append(names, "MULTI", "EXEC")
}

// Do carries out a command of a client at an address, and returns the reply.
func (s *Server) Do(client string, words []string) any {
	o := s.conns[client]
	if o == nil {
		o = &conn{}
		s.conns[client] = o
	}
	switch {
	case words[0] == "MULTI":
		o.multi = true
		return "OK"
	case words[0] == "EXEC":
		all := []any{}
		queued := o.queued
		o.multi, o.queued = false, nil
		claims := slices.ContainsFunc(queued, func(words []string) bool { return words[0] == "QCLAIM" })
		if s.room == Stuck || s.room >= NoPush && slices.ContainsFunc(queued, stores) || s.room == Stop && claims {
			return Err("EXECABORT")
		}
		for _, words := range queued {
			all = append(all, s.run(client, words))
		}
		return all
	case o.multi:
		o.queued = append(slices.Clone(o.queued), words)
		return "QUEUED"
	}
	return s.run(client, words)
}

// stores says that a command brings something. One that does refuses its transaction as a whole.
func stores(words []string) bool {
	return slices.Contains([]string{"QPUSH", "QMPUSH", "QSET", "QPAUSE", "QCLOSE", "QSHARE", "SET"}, words[0]) || words[0] == "QREDRIVE" && len(words) == 3
}

// Gone says that a client has hung up.
func (s *Server) Gone(client string) { delete(s.conns, client) }

func (s *Server) run(client string, words []string) any {
	v := verbs[words[0]]
	if v == nil {
		panic("no rule for " + words[0])
	}
	if s.room == Stuck {
		s.conns[client].bulk = nil
		return Err("OOM")
	}
	return v(s, call{conn: client, words: words, name: words[1]})
}

// takes says what a full disk refuses of what changes something, nil if nothing.
func (s *Server) takes() any {
	if s.room >= Stop {
		return Err("OOM")
	}
	return nil
}

// stores is takes of what brings something.
func (s *Server) stores() any {
	if s.room >= NoPush {
		return Err("OOM")
	}
	return nil
}

// parse reads the options behind some words. Those of flags have no value.
func (c *call) parse(from int, flags ...string) {
	c.options, c.tags, c.filters = map[string]string{}, Map{}, nil
	for at := from; at < len(c.words); at++ {
		switch name := c.words[at]; {
		case name == "TAG":
			c.tags[c.words[at+1]] = c.words[at+2]
			at += 2
		case name == "FILTER":
			c.filters = append(c.filters, filter{c.words[at+1], c.words[at+2], c.words[at+3]})
			at += 3
		case slices.Contains(flags, name), name == "MATCH", name == "ALL":
			c.options[name] = ""
		default:
			at++
			c.options[name] = c.words[at]
		}
	}
}

func (c *call) has(option string) bool { _, ok := c.options[option]; return ok }

// number is the value of an option, or another one if it is not given.
func (c *call) number(option string, otherwise int64) int64 {
	if !c.has(option) {
		return otherwise
	}
	return number(c.options[option])
}

func number(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
