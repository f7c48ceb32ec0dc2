package resp

import (
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
		}
	}
	return table
}

// addSubs makes the table of a command's subs, with HELP, which lists them.
func (c *command) addSubs() {
	c.subs = append(c.subs, command{name: c.name + "|help", arity: 2, flags: flagLocal | flagFast, run: func(s *session, _ *broker.Tx, _ [][]byte) error {
		s.array(len(c.subs))
		s.simple(strings.ToUpper(c.name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
		for _, sub := range c.subs[:len(c.subs)-1] {
			s.simple(strings.ToUpper(sub.name[len(c.name)+1:]))
		}
		return nil
	}})
	c.sub = make(map[string]*command, len(c.subs))
	for i := range c.subs {
		c.sub[c.subs[i].name[len(c.name)+1:]] = &c.subs[i]
	}
}
