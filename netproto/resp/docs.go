package resp

import (
	"strings"
	"sync"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

// docs is what the words say of a command.
type docs struct {
	summary, group string
	arguments      []argument
}

// allDocs are those of each command in the words, by its name in the table.
var allDocs = sync.OnceValue(func() map[string]*docs {
	all := make(map[string]*docs)
	for _, g := range words.Commands {
		for _, c := range g.Commands {
			summary := "reply: " + c.Reply
			if c.Remarks != "" {
				summary += "; " + c.Remarks
			}
			all[commandName(c.Name)] = &docs{summary, g.Name, parseArguments(c.Syntax(), g.Name != "queue")}
		}
	}
	return all
})

// commandName is the name in the table of a command in the words.
func commandName(name string) string { return strings.ToLower(strings.ReplaceAll(name, " ", "|")) }

// describeDocs replies with a command's name, and the map that is its documentation in Redis 7.
func (s *session) describeDocs(c *command) {
	d := allDocs()[c.name]
	if d == nil { // it only holds others
		d = &docs{summary: "a container of commands", group: allDocs()[c.subs[0].name].group}
	}
	s.bulkString(c.name)
	fast := c.flags&flagFast != 0
	s.mapHeader(2 + trues(fast, d.arguments != nil, c.subs != nil))
	s.bulkString("summary", d.summary, "group", d.group)
	if fast {
		s.bulkString("complexity", "the same however much is stored")
	}
	if d.arguments != nil {
		s.bulkString("arguments")
		s.describeArguments(d.arguments)
	}
	if c.subs != nil {
		s.bulkString("subcommands")
		s.mapHeader(len(c.subs))
		for i := range c.subs {
			s.describeDocs(&c.subs[i])
		}
	}
}

func (s *session) describeArguments(all []argument) {
	s.array(len(all))
	for _, a := range all {
		s.mapHeader(2 + trues(a.token != "", a.flags != nil, a.parts != nil))
		s.bulkString("name", a.name, "type", a.kind)
		if a.token != "" {
			s.bulkString("token", a.token)
		}
		if a.flags != nil {
			s.bulkString("flags")
			s.set(len(a.flags))
			for _, f := range a.flags {
				s.simple(f)
			}
		}
		if a.parts != nil {
			s.bulkString("arguments")
			s.describeArguments(a.parts)
		}
	}
}

func trues(all ...bool) (n int) {
	for _, yes := range all {
		if yes {
			n++
		}
	}
	return n
}
