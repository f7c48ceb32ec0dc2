package resp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

// command is one command. Its functions are called with the request's arguments, of which args[0]
// is the command's name. The arguments are valid during the call only.
type command struct {
	name  string // in lower case
	flags flags
	// arity is the number of its arguments, the name included; -n: n or more. Its keys stand at first,
	// at last (-1: the last argument) and each step between; it has none if first is 0. layOut tells
	// what a row does not.
	arity, first, last, step int
	// elements is how many arguments it has besides what it brings, deletes or moves, of which each
	// has so many arguments (per), if it takes any number.
	elements, per int
	// packets is the last of the ids that begin behind the queue (-1: the last argument); 0: there are
	// none that the audit would name.
	packets int
	// sets says that what stands behind the queue is names and values of settings, which the audit
	// tells.
	sets bool
	// right is what a user needs for each of the keys, and second for the second of them; see needs. A
	// command without keys needs it for all queues, but for access.Operate.
	right, second access.Right
	// asks says whether a user may make a request whose places do not tell what it is about.
	asks func(s *session, right access.Right, args [][]byte) bool
	// run replies, or returns an error. The session puts that into Redis's words, in place of what was
	// replied.
	run handler
	// prepare does a slice of what run needs, unless that is nil, and returns how many packets that
	// took, and true if there is more to do: others have their turn between. For a transaction EXEC
	// does it.
	prepare func(tx *broker.Tx, args [][]byte) (done int, more bool)
	// subs are the commands that the second argument chooses among: "client|id". Their arity counts
	// both words.
	subs []command
	sub  map[string]*command // subs by their own word; newTable makes it
	// form returns another form of the command if the arguments mean that, which is carried out in its
	// place. nil: there is no other.
	form func(args [][]byte) *command
}

type handler = func(s *session, tx *broker.Tx, args [][]byte) error

// errUnfinished is what a command returns that is called again, until its last slice.
var errUnfinished = errors.New("a slice is done, the next one follows")

type flags uint16

const (
	flagWrite    flags = 1 << iota // changes queues or names
	flagRead                       // reads them
	flagFast                       // takes the same short time however much is stored
	flagBlocking                   // may wait
	// flagLocal: does not depend on what the broker stores. It runs outside of Atomic, also while the
	// disk is full.
	flagLocal
	flagNoAuth   // allowed before the password was given
	flagAtOnce   // in a transaction it is carried out, not queued
	flagPubSub   // allowed in RESP2 while subscribed
	flagAdds     // stores more: refused in a transaction when the disk is nearly full
	flagAdmin    // for operators; only told to clients
	flagChannels // about channels; only told to clients
	flagPayload  // an argument may be a payload, and longer than all others
	flagCostly   // may take long besides what it changes: refused in a transaction that has looked at too much
	flagSlices   // changes many packets, slice by slice: each is an Atomic, and others have their turn between
	flagClaims   // claims from the queues of takeQueues: refused in a transaction when hardly any memory is left
)

// changes is how many elements or names a request brings or deletes, as far as its arguments say.
func (c *command) changes(args [][]byte) int {
	switch {
	case c.per > 0:
		return (len(args) - c.elements) / c.per
	case c.flags&flagWrite == 0:
		return 0
	case c.last == -1: // alone it goes on in slices
		return len(args) - c.first
	}
	return 1
}

// looks says that a command may take long, and changes nothing.
func (c *command) looks() bool {
	return c.flags&flagRead != 0 || c.flags&(flagLocal|flagFast) == flagLocal
}

// maxName is more than any command's name has.
const maxName = 32

// find finds the command of a request; refusal says in Redis's words why there is none.
func (p *Protocol) find(args [][]byte) (c *command, refusal string) {
	c = lookup(p.table, args[0])
	switch {
	case c == nil:
		return nil, p.unknownCommand(args)
	case c.sub != nil && (len(args) > 1 || c.run == nil):
		if len(args) < 2 {
			return nil, wrongArity(c.name)
		}
		sub := lookup(c.sub, args[1])
		if sub == nil {
			return nil, unknownSubcommand(c.name, args[1])
		}
		c = sub
	}
	if c.arity >= 0 && len(args) != c.arity || len(args) < -c.arity {
		return nil, wrongArity(c.name)
	}
	if c.form != nil {
		if other := c.form(args); other != nil {
			return other, ""
		}
	}
	return c, ""
}

// unknownCommand is the error of a command that is not here. Clients know it by its first words.
func (p *Protocol) unknownCommand(args [][]byte) string {
	if slices.ContainsFunc(p.config.Disable, func(name string) bool { return is(args[0], name) }) {
		return fmt.Sprintf("ERR command '%s' is switched off on this server", quoted(args[0]))
	}
	if text := instead(string(quoted(args[0]))); text != "" {
		return fmt.Sprintf("ERR unknown command '%s': Holdfast %s", quoted(args[0]), text)
	}
	var b strings.Builder
	for _, a := range args[1:] {
		if b.Len() >= maxQuoted {
			break
		}
		fmt.Fprintf(&b, "'%s' ", a[:min(len(a), maxQuoted-b.Len())])
	}
	return fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", quoted(args[0]), b.String())
}

// lookup finds a command by its name in either case; nil if there is none.
func lookup(table map[string]*command, name []byte) *command {
	var lowered [maxName]byte
	if len(name) > maxName {
		return nil
	}
	for i, c := range name {
		lowered[i] = lower(c)
	}
	return table[string(lowered[:len(name)])]
}

// longest is how many bytes the longest of args has.
func longest(args [][]byte) (n int) {
	for _, a := range args {
		n = max(n, len(a))
	}
	return n
}

func bytesOf(args [][]byte) (n int) {
	for _, a := range args {
		n += len(a)
	}
	return n
}
