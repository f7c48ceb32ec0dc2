package resp

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

func introspectionCommands() []command {
	const local = flagLocal
	return []command{{name: "command", arity: -1, flags: local, run: commandAll, subs: []command{
		{name: "command|count", flags: local, run: commandCount},
		{name: "command|docs", flags: local, run: commandDocs},
		{name: "command|getkeys", flags: local, run: commandGetKeys},
		{name: "command|info", flags: local, run: commandInfo},
		{name: "command|list", flags: local, run: commandList},
	}}}
}

// sorted is all commands by name.
func (p *Protocol) sorted() []*command {
	all := slices.Collect(maps.Values(p.table))
	slices.SortFunc(all, func(a, b *command) int { return strings.Compare(a.name, b.name) })
	return all
}

// named finds a command by what COMMAND calls it: "client", or "client|id".
func (p *Protocol) named(arg []byte) *command {
	name := strings.ToLower(string(arg))
	container, sub, ok := strings.Cut(name, "|")
	c := p.table[container]
	if c != nil && ok {
		return c.sub[sub]
	}
	return c
}

func commandAll(s *session, _ *broker.Tx, _ [][]byte) error {
	all := s.protocol.sorted()
	s.array(len(all))
	for _, c := range all {
		s.describeCommand(c)
	}
	return nil
}

func commandCount(s *session, _ *broker.Tx, _ [][]byte) error {
	return s.int(int64(len(s.protocol.table)))
}

func commandInfo(s *session, tx *broker.Tx, args [][]byte) error {
	if len(args) == 2 {
		return commandAll(s, tx, args)
	}
	s.array(len(args) - 2)
	for _, name := range args[2:] {
		if c := s.protocol.named(name); c != nil {
			s.describeCommand(c)
		} else {
			s.null()
		}
	}
	return nil
}

// flagWords are the words of Redis for flags.
var flagWords = []struct {
	flag flags
	word string
}{
	{flagWrite, "write"},
	{flagRead, "readonly"},
	{flagAdds, "denyoom"},
	{flagAdmin, "admin"},
	{flagChannels, "pubsub"},
	{flagBlocking, "blocking"},
	{flagFast, "fast"},
	{flagNoAuth, "no_auth"},
}

// describeCommand replies with the ten things that Redis 7 tells of a command. The last four, which
// are categories, tips, places of keys in detail and subcommands, are empty but for the last.
func (s *session) describeCommand(c *command) {
	s.array(10)
	s.bulkString(c.name)
	s.int(int64(c.arity))
	var words []string
	for _, f := range flagWords {
		if c.flags&f.flag != 0 {
			words = append(words, f.word)
		}
	}
	s.set(len(words))
	for _, w := range words {
		s.simple(w)
	}
	s.int(int64(c.first))
	s.int(int64(c.last))
	s.int(int64(c.step))
	s.set(0)
	s.array(0)
	s.array(0)
	s.array(len(c.subs))
	for i := range c.subs {
		s.describeCommand(&c.subs[i])
	}
}

// commandDocs leaves out names that it does not know, as Redis does.
func commandDocs(s *session, _ *broker.Tx, args [][]byte) error {
	all := s.protocol.sorted()
	if len(args) > 2 {
		all = nil
		for _, name := range args[2:] {
			if c := s.protocol.named(name); c != nil && !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	s.mapHeader(len(all))
	for _, c := range all {
		s.describeDocs(c)
	}
	return nil
}

func commandList(s *session, _ *broker.Tx, args [][]byte) error {
	pattern := []byte("*")
	switch {
	case len(args) == 2:
	case len(args) == 5 && is(args[2], "filterby") && is(args[3], "pattern"):
		pattern = args[4]
	case len(args) == 5 && is(args[2], "filterby") && (is(args[3], "module") || is(args[3], "aclcat")):
		pattern = nil // there are none
	default:
		return failure(errSyntax)
	}
	g, n, names := patternArg(bytes.ToLower(pattern)), 0, []byte(nil)
	for _, c := range s.protocol.sorted() {
		if g.Match([]byte(c.name), &s.steps) {
			names = wire.AppendBulk(names, c.name)
			n++
		}
	}
	if s.steps < 0 {
		return failure(errCostly)
	}
	return s.bulks(n, names)
}

func commandGetKeys(s *session, _ *broker.Tx, args [][]byte) error {
	request := args[2:]
	c, refusal := s.protocol.find(request)
	switch {
	case c == nil && lookup(s.protocol.table, request[0]) == nil:
		return failure("ERR Invalid command specified")
	case refusal != "":
		return failure("ERR Invalid number of arguments specified for command")
	case c.first == 0:
		return failure("ERR The command has no key arguments")
	}
	last := c.last
	if last < 0 {
		last += len(request)
	}
	s.array((last-c.first)/c.step + 1)
	for i := c.first; i <= last; i += c.step {
		s.bulk(request[i])
	}
	return nil
}
