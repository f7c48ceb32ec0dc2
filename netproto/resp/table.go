package resp

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
)

// newTable makes the table of all commands by name.
func newTable() map[string]*command {
	table := make(map[string]*command)
	for _, group := range [][]command{
		connectionCommands(), clientCommands(), configCommands(), infoCommands(), introspectionCommands(),
		aclCommands(), transactionCommands(), pubsubCommands(), listCommands(), stringCommands(), hashCommands(), keyCommands(), workCommands(),
	} {
		for i := range group {
			c := &group[i]
			table[c.name] = c
			if c.subs != nil {
				c.addSubs()
			}
			c.layOut()
		}
	}
	return table
}

// addSubs makes the table of a command's subs, with HELP, which lists them.
func (c *command) addSubs() {
	c.subs = append(c.subs, command{name: c.name + "|help", flags: flagLocal | flagFast, run: func(s *session, _ *broker.Tx, _ [][]byte) error {
		s.array(len(c.subs))
		s.simple(strings.ToUpper(c.name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
		for _, sub := range c.subs[:len(c.subs)-1] {
			s.simple(strings.ToUpper(sub.name[len(c.name)+1:]))
		}
		return nil
	}})
	c.sub = make(map[string]*command, len(c.subs))
	for i := range c.subs {
		c.subs[i].layOut()
		c.sub[c.subs[i].name[len(c.name)+1:]] = &c.subs[i]
	}
}

// layOut takes from the words how many arguments a command has, and which of them are keys.
func (c *command) layOut() {
	d := allDocs()[c.name]
	if d == nil || c.subs != nil { // its subcommands have arguments
		return
	}
	at := 1 + strings.Count(c.name, "|")
	n, exact := least(d.arguments)
	if n += at; !exact {
		n = -n
	}
	c.arity = cmp.Or(c.arity, n)
	arguments := d.arguments
	if len(arguments) == 1 && arguments[0].kind == "oneof" && arguments[0].parts[0].kind == "block" {
		arguments = arguments[0].parts[0].parts // of the first form
	}
	fixed := true
	for i, a := range arguments {
		parts := []argument{a}
		if a.kind == "block" {
			parts = a.parts
		}
		optional, many := slices.Contains(a.flags, "optional"), slices.Contains(a.flags, "multiple")
		switch key := parts[0].kind == "key"; {
		case key && optional && many: // where the last one stands is not told by its place
			c.first, c.last, c.step = 0, 0, 0
		case key && !optional && fixed:
			if c.first == 0 {
				c.first, c.step = at, len(parts)
			}
			if c.last = at; many {
				behind, exact := least(arguments[i+1:])
				if c.last = -1 - behind; !exact {
					c.first, c.last, c.step = 0, 0, 0
				}
			}
		}
		fixed = fixed && !optional && !many
		at++
	}
}

// least is how many words arguments have at least, and exact tells whether there cannot be more.
func least(all []argument) (n int, exact bool) {
	exact = true
	for _, a := range all {
		words := 1
		switch {
		case a.kind == "block":
			var same bool
			words, same = least(a.parts)
			exact = exact && same
		case a.kind == "oneof":
			words, _ = least(a.parts[:1])
			for i := range a.parts {
				other, same := least(a.parts[i : i+1])
				exact = exact && same && other == words
				words = min(words, other)
			}
			words = max(words, 1) // one of them is there
		}
		if a.token != "" && a.kind != "pure-token" {
			words++
		}
		if slices.Contains(a.flags, "optional") {
			words = 0
		}
		n += words
		exact = exact && a.flags == nil
	}
	return n, exact
}
