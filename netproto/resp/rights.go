package resp

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/glob"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// needs is the right that a command needs for what it is about. What only takes, or ends a claim,
// adds nothing; what discards what others may have stored says so in the table.
func (c *command) needs() access.Right {
	switch {
	case c.right != access.None:
		return c.right
	case c.flags&flagRead != 0:
		return access.Look
	case c.flags&flagAdds != 0:
		return access.Push
	case c.flags&flagWrite != 0:
		return access.Take
	}
	return access.None
}

// forbidden says in Redis's words why the user may not make a request, "" if it may.
func (s *session) forbidden(c *command, args [][]byte) string {
	right := c.needs()
	switch {
	case s.pass.Open() || s.allowed(c, right, args):
		return ""
	case !s.pass.Account().MaySome(right | c.second):
		return fmt.Sprintf("NOPERM this user has no permissions to run the '%s' command: it needs the right %v", c.name, right|c.second)
	case c.flags&flagChannels != 0:
		return "NOPERM this user has no permissions to access one of the channels used as arguments"
	}
	return errNotAllowed
}

// mayChange refuses to change what others may have stored under a name, if it is there, unless the
// user manages that.
func (s *session) mayChange(name []byte, there bool) {
	if there && !s.pass.May(access.Manage, name) {
		panic(failure(errNotAllowed))
	}
}

// mayPush refuses to bring packets to a queue to which the user may not push.
func (s *session) mayPush(to []byte) {
	if !s.pass.May(access.Push, to) {
		panic(failure(errNotAllowed))
	}
}

func (s *session) allowed(c *command, right access.Right, args [][]byte) bool {
	switch {
	case c.asks != nil:
		return c.asks(s, right, args)
	case right == access.None:
		return true
	case right == access.Operate:
		return s.pass.May(right, nil)
	case c.first == 0:
		return s.mayAll(right, []byte("*"))
	}
	last := c.last
	if last < 0 {
		last += len(args)
	}
	for i := c.first; i <= last && i < len(args); i += c.step {
		if !s.pass.May(right, args[i]) {
			return false
		}
		if c.second != access.None {
			right = c.second
		}
	}
	return true
}

// mayAll says whether the user has a right for all that a pattern matches.
func (s *session) mayAll(right access.Right, pattern []byte) bool {
	g, err := glob.Compile(pattern)
	return err != nil || s.pass.Account().MayAll(right, g) // the command refuses it as too long
}

// mayEach says whether the user has a right for each of some names.
func (s *session) mayEach(right access.Right, names [][]byte) bool {
	for _, name := range names {
		if !s.pass.May(right, name) {
			return false
		}
	}
	return true
}

func asksFirst(s *session, right access.Right, args [][]byte) bool { return s.pass.May(right, args[1]) }

// asksQueues asks for the queues of QPOP and QCLAIM.
func asksQueues(s *session, right access.Right, args [][]byte) bool {
	queues, _ := takeQueues(args)
	return s.mayEach(right, queues)
}

// asksCounted asks for names that follow their number, which is an argument.
func asksCounted(at int) func(*session, access.Right, [][]byte) bool {
	return func(s *session, right access.Right, args [][]byte) bool {
		names := args[at+1:]
		n, ok := wire.ParseInt(args[at])
		if !ok || n < 1 || n > int64(len(names)) {
			n = int64(len(names)) // the command refuses the number
		}
		return s.mayEach(right, names[:n])
	}
}

// asksPatterns asks for all that one of some patterns matches.
func asksPatterns(s *session, right access.Right, args [][]byte) bool {
	for _, pattern := range args[1:] {
		if !s.mayAll(right, pattern) {
			return false
		}
	}
	return true
}

// asksMatch asks for all that the option MATCH matches. The options are pairs, and the last counts.
func asksMatch(from int) func(*session, access.Right, [][]byte) bool {
	return func(s *session, right access.Right, args [][]byte) bool {
		pattern := []byte("*")
		for i := from; i < len(args)-1; i += 2 {
			if is(args[i], "match") {
				pattern = args[i+1]
			}
		}
		return s.mayAll(right, pattern)
	}
}

// asksSome asks for any name: the command shows those for which the user has the right.
func asksSome(s *session, right access.Right, _ [][]byte) bool {
	return s.pass.Account().MaySome(right)
}

// asksChannels asks for all channels that PUBSUB CHANNELS lists.
func asksChannels(s *session, right access.Right, args [][]byte) bool {
	if len(args) == 2 {
		return s.mayAll(right, []byte("*"))
	}
	return s.mayAll(right, args[2])
}

// asksToListen asks for channels, the first of which is an argument.
func asksToListen(at int) func(*session, access.Right, [][]byte) bool {
	return func(s *session, _ access.Right, args [][]byte) bool {
		for _, channel := range args[at:] {
			if !s.mayListen(channel) {
				return false
			}
		}
		return true
	}
}

// mayListen says whether the session may listen to a channel. That of events is for all who may
// look at something or operate: each gets what it may know.
func (s *session) mayListen(channel []byte) bool {
	if queue, tails := tailOf(channel); tails {
		channel = queue
	} else if string(channel) == eventsChannel && !s.pass.Open() {
		a := s.pass.Account()
		return a.MaySome(access.Look) || a.May(access.Operate, nil)
	}
	return s.pass.May(access.Look, channel)
}

// asksOfClient asks for what CLIENT KILL and CLIENT UNBLOCK need: nothing more for a connection of
// the same user that is named by its id. What CLIENT KILL has alone is an address.
func asksOfClient(s *session, right access.Right, args [][]byte) bool {
	id := args[2]
	if is(args[1], "kill") {
		if len(args) != 4 || !is(id, "id") {
			return s.pass.May(right, nil)
		}
		id = args[3]
	}
	n, _ := wire.ParseInt(id)
	t := s.protocol.sessions[n]
	return s.pass.May(right, nil) || t != nil && s.sees(t)
}

// sees says whether the user may know of another connection: operators see all.
func (s *session) sees(t *session) bool {
	return s.pass.May(access.Operate, nil) || s.pass.Account() == t.pass.Account()
}
