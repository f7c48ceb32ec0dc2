package resp

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

// client is what a connection says of itself, and how it wants to be answered.
type client struct {
	name       string
	library    string
	libVersion string
	since      int64 // Unix milliseconds of its first request; 0 before that
	active     int64 // and of its latest
	last       *command
	replyOff   bool
	skipNext   bool // the next request gets no reply
}

// maxLabel is the most bytes of a name that a client gives itself.
const maxLabel = 256

func clientCommands() []command {
	const local = flagLocal
	return []command{{name: "client", arity: -2, flags: flagLocal | flagAdmin, subs: []command{
		{name: "client|id", flags: local | flagFast, run: clientID},
		{name: "client|getname", flags: local | flagFast, run: clientGetName},
		{name: "client|setname", flags: local | flagFast, run: clientSetName},
		{name: "client|setinfo", flags: local | flagFast, run: clientSetInfo},
		{name: "client|info", flags: local, run: clientInfo},
		{name: "client|list", flags: local | flagAdmin, run: clientList},
		{name: "client|kill", flags: local | flagAdmin, right: access.Operate, asks: asksOfClient, run: clientKill},
		{name: "client|unblock", flags: local | flagAdmin, right: access.Operate, asks: asksOfClient, run: clientUnblock},
		{name: "client|reply", flags: local | flagFast, run: clientReply},
	}}}
}

func clientID(s *session, _ *broker.Tx, _ [][]byte) error { return s.int(s.id) }

func clientGetName(s *session, _ *broker.Tx, _ [][]byte) error { return s.named(s.client.name) }

// named replies with a name, or with null if it is empty.
func (s *session) named(name string) error {
	if name == "" {
		return s.null()
	}
	return s.bulkString(name)
}

func clientSetName(s *session, tx *broker.Tx, args [][]byte) error {
	return s.done(s.setName(tx, args[2]))
}

// setName names the connection.
func (s *session) setName(tx *broker.Tx, name []byte) error {
	switch {
	case !isLabel(name):
		return failure("ERR Client names cannot contain spaces, newlines or special characters.")
	case len(name) > maxLabel:
		return failure(fmt.Sprintf("ERR Client names have at most %d bytes.", maxLabel))
	}
	s.client.name = string(name)
	tx.SetName(s.consumer, s.client.name)
	return nil
}

// isLabel says that a name has only what can be printed, and no space.
func isLabel(name []byte) bool {
	return !slices.ContainsFunc(name, func(c byte) bool { return c < '!' || c > '~' })
}

func clientSetInfo(s *session, _ *broker.Tx, args [][]byte) error {
	attribute, value := args[2], args[3]
	switch {
	case !isLabel(value) || len(value) > maxLabel:
		return failure(fmt.Sprintf("ERR %s cannot contain spaces, newlines or special characters.", quoted(attribute)))
	case is(attribute, "lib-name"):
		s.client.library = string(value)
	case is(attribute, "lib-ver"):
		s.client.libVersion = string(value)
	default:
		return failure(fmt.Sprintf("ERR Unrecognized option '%s'", quoted(attribute)))
	}
	return s.ok()
}

func clientInfo(s *session, tx *broker.Tx, _ [][]byte) error {
	return s.verbatim(string(s.describe(tx, nil)))
}

// describe appends the session's line in the list of clients.
func (s *session) describe(tx *broker.Tx, dst []byte) []byte {
	kind := ""
	queued := -1
	if s.subscriptions() > 0 {
		kind += "P"
	}
	if s.multi.on {
		kind += "x"
		queued = len(s.multi.commands)
	}
	if s.consumer.Parked() {
		kind += "b"
	}
	if kind == "" {
		kind = "N"
	}
	last, version := "NULL", 2
	if s.client.last != nil {
		last = s.client.last.name
	}
	if s.resp3 {
		version = 3
	}
	unsent := s.peer.Unsent()
	return fmt.Appendf(dst, "id=%d addr=%s laddr=%s fd=0 name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=0 multi=%d"+
		" qbuf=%d qbuf-free=0 argv-mem=0 multi-mem=%d rbs=%d rbp=%d obl=0 oll=0 omem=%d tot-mem=%d events=r cmd=%s user=%s redir=-1 resp=%d lib-name=%s lib-ver=%s\n",
		s.id, s.peer.Remote(), s.peer.Local(), s.client.name, (tx.Now()-s.client.since)/1000, (tx.Now()-s.client.active)/1000,
		kind, s.consumer.Database(), len(s.channels), len(s.patterns), queued,
		s.parser.Looked(), s.multi.held, cap(s.peer.Out), cap(s.peer.Out), unsent, unsent+int64(s.peer.Held()+cap(s.peer.Out)), last, s.userName(), version, s.client.library, s.client.libVersion)
}

// all is the ids of the sessions, in ascending order.
func (p *Protocol) all() []int64 { return slices.Sorted(maps.Keys(p.sessions)) }

// clientList describes sessions that were there when it began, if they still are at their turn.
func clientList(s *session, tx *broker.Tx, args [][]byte) error {
	kind, l := "", &s.look
	var ids [][]byte
	switch {
	case len(args) == 4 && is(args[2], "type"):
		kind = clientTypeArg(args[3])
	case len(args) > 3 && is(args[2], "id"):
		ids = args[3:]
	case len(args) != 2:
		return failure(errSyntax)
	}
	if !l.under {
		s.beginList(tx, ids)
	}
	err := s.inSlices(func() (bool, error) {
		for n := 0; l.cursor < uint64(len(l.ids)) && !s.sliceFull(n); n++ {
			t := s.protocol.sessions[l.ids[l.cursor]]
			l.cursor++
			if t != nil && (kind == "" || t.kind() == kind) && s.sees(t) {
				s.peer.Out = t.describe(tx, s.peer.Out)
				s.fits(0)
			}
		}
		return l.cursor < uint64(len(l.ids)), nil
	})
	if err == nil {
		l.head = s.appendTextHead(nil, l.size+len(s.peer.Out)-s.commandStart)
		s.peer.Out = append(s.peer.Out, "\r\n"...)
	}
	return err
}

// beginList notes which sessions CLIENT LIST looks at: those with the ids, or all.
func (s *session) beginList(tx *broker.Tx, ids [][]byte) {
	if len(ids) > maxIDs {
		refuse("ERR too many ids: expected at most %d", maxIDs)
	}
	tx.Looked(len(s.protocol.sessions) * chosenSession)
	if ids == nil {
		s.look.ids = s.protocol.all()
	} else {
		var chosen []int64
		for _, id := range ids {
			chosen = append(chosen, countArg(id, math.MinInt64, "ERR Invalid client ID"))
		}
		slices.Sort(chosen)
		s.look.ids = slices.Compact(chosen)
	}
	s.peer.Owe(idBytes * len(s.look.ids))
}

// maxIDs is the most ids that CLIENT LIST names: they are sorted in one turn.
const maxIDs = 1 << 14

// chosenSession is what CLIENT LIST and CLIENT KILL pay in a transaction for each session among
// which they choose. See broker.MaxLooks.
const chosenSession = 8

// kind is the session's type in CLIENT LIST and CLIENT KILL.
func (s *session) kind() string {
	if s.subscriptions() > 0 {
		return "pubsub"
	}
	return "normal"
}

func clientTypeArg(arg []byte) string {
	for _, kind := range []string{"normal", "pubsub", "master", "replica"} {
		if is(arg, kind) {
			return kind
		}
	}
	if !is(arg, "slave") {
		refuse("ERR Unknown client type '%s'", quoted(arg))
	}
	return "replica"
}

// victims says which sessions CLIENT KILL ends; an empty field says nothing.
type victims struct {
	id            int64
	addr, laddr   string
	kind, user    string
	spareMe, none bool
}

func (v *victims) chosen(s, t *session) bool {
	return !v.none && (v.id == 0 || t.id == v.id) && (v.addr == "" || t.peer.Remote().String() == v.addr) &&
		(v.laddr == "" || t.peer.Local().String() == v.laddr) && (v.kind == "" || t.kind() == v.kind) && (v.user == "" || t.userName() == v.user) && (t != s || !v.spareMe)
}

func clientKill(s *session, tx *broker.Tx, args [][]byte) error {
	v := victims{spareMe: true}
	if len(args) == 3 {
		v = victims{addr: string(args[2]), none: len(args[2]) == 0}
	} else {
		v.parse(s, args[2:])
	}
	killed := 0
	tx.Looked(len(s.protocol.sessions) * chosenSession)
	for _, id := range s.protocol.all() {
		t := s.protocol.sessions[id]
		if !v.chosen(s, t) {
			continue
		}
		killed++
		if t == s {
			s.leaving = true
		} else {
			t.kill(tx)
		}
	}
	switch {
	case len(args) > 3:
		return s.int(int64(killed))
	case killed == 0:
		return failure("ERR No such client")
	}
	return s.ok()
}

// parse reads the options of CLIENT KILL.
func (v *victims) parse(s *session, args [][]byte) {
	for ; len(args) > 0; args = args[2:] {
		if len(args) < 2 {
			refuse(errSyntax)
		}
		option, value := args[0], args[1]
		switch {
		case is(option, "id"):
			v.id = countArg(value, 1, "ERR client-id should be greater than 0")
		case is(option, "addr"):
			v.addr, v.none = string(value), v.none || len(value) == 0
		case is(option, "laddr"):
			v.laddr, v.none = string(value), v.none || len(value) == 0
		case is(option, "type"):
			v.kind = clientTypeArg(value)
		case is(option, "user"):
			if v.user = string(value); !s.isUser(v.user) {
				refuse("ERR No such user '%s'", quoted(value))
			}
		case is(option, "skipme") && (is(value, "yes") || is(value, "no")):
			v.spareMe = is(value, "yes")
		default:
			refuse(errSyntax)
		}
	}
}

func clientUnblock(s *session, tx *broker.Tx, args [][]byte) error {
	failed := false
	switch {
	case len(args) > 4:
		return failure(wrongArity("client|unblock"))
	case len(args) == 3, is(args[3], "timeout"):
	case is(args[3], "error"):
		failed = true
	default:
		return failure("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	}
	id := intArg(args[2])
	t := s.protocol.sessions[id]
	s.forItself = t != nil && t.userName() == s.userName() && t.peer.Host() == s.peer.Host()
	switch {
	case t == nil || !t.consumer.Parked() || t.consumer.TimedOut() || t.cancelLogin != nil || t.verdict != nil:
		return s.int(0)
	case failed:
		tx.Unpark(t.consumer)
		t.unpark()
		reply := "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
		if t.noReply {
			reply = ""
		}
		t.peer.Send(netproto.NewMessage([]byte(reply)))
	default:
		tx.TimeOut(t.consumer)
	}
	return s.int(1)
}

func clientReply(s *session, _ *broker.Tx, args [][]byte) error {
	c := &s.client
	switch {
	case is(args[2], "on"):
		c.replyOff, c.skipNext, s.noReply = false, false, false
		return s.ok()
	case s.inExec:
		return failure("ERR replies of a transaction cannot be switched off")
	case is(args[2], "off"):
		c.replyOff, s.noReply = true, true
	case is(args[2], "skip"):
		c.skipNext, s.noReply = !c.replyOff, true
	default:
		return failure(errSyntax)
	}
	return nil
}
