package resp

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

// NewSentinel makes the protocol that clients of Redis Sentinel speak. It asks nothing of its
// broker, which may be an empty one. With users each of them may ask, whatever its rights.
func NewSentinel(c Config, cell Cell) *Protocol {
	p := New(c)
	cell.told = cell.Owner()
	p.cell = &cell
	for name, known := range p.table {
		switch name {
		case "hello", "auth", "ping", "quit", "reset", "client", "unsubscribe", "punsubscribe":
		case "subscribe", "psubscribe":
			known.right, known.asks = access.None, nil
		default:
			delete(p.table, name)
		}
	}
	for _, own := range sentinelCommands() {
		if p.table[own.name] = &own; own.subs != nil {
			own.addSubs()
			own.sub["help"].arity = 2
		}
	}
	return p
}

func sentinelCommands() []command {
	const local = flagLocal | flagFast
	none := func(s *session) error { return s.array(0) }
	return []command{
		{name: "info", arity: -1, flags: local, run: sentinelInfo},
		{name: "role", arity: 1, flags: local, run: sentinelRole},
		{name: "sentinel", arity: -2, flags: local, subs: []command{
			{name: "sentinel|masters", arity: 2, flags: local, run: sentinelMasters},
			{name: "sentinel|get-master-addr-by-name", arity: 3, flags: local, run: sentinelAddress},
			{name: "sentinel|master", arity: 3, flags: local, run: ofCell((*session).master)},
			{name: "sentinel|sentinels", arity: 3, flags: local, run: ofCell(none)},
			{name: "sentinel|replicas", arity: 3, flags: local, run: ofCell(none)},
			{name: "sentinel|slaves", arity: 3, flags: local, run: ofCell(none)},
			{name: "sentinel|ckquorum", arity: 3, flags: local, run: ofCell((*session).quorum)},
		}},
	}
}

// ofCell makes a handler of what is asked of the cell with a name.
func ofCell(run func(s *session) error) handler {
	return func(s *session, _ *broker.Tx, args [][]byte) error {
		if string(args[2]) != s.protocol.cell.Name {
			return failure("ERR No such master with that name")
		}
		return run(s)
	}
}

// owner is the owner's address as the client can dial it; "" and "" if there is none.
func (s *session) owner() (host, port string) {
	host, port, _ = net.SplitHostPort(s.protocol.cell.Owner()) // of "" it is nothing
	if ip, err := netip.ParseAddr(host); port != "" && (host == "" || err == nil && ip.IsUnspecified()) {
		host, _, _ = net.SplitHostPort(s.peer.Local().String())
	}
	return host, port
}

func sentinelInfo(s *session, _ *broker.Tx, _ [][]byte) error {
	status, cell := "ok", s.protocol.cell
	host, port := s.owner()
	if port == "" {
		status = "odown"
	}
	return s.verbatim(fmt.Sprintf("# Server\r\nredis_version:%s\r\nholdfast_version:%s\r\nredis_mode:sentinel\r\n\r\n"+
		"# Sentinel\r\nsentinel_masters:1\r\nsentinel_tilt:0\r\nmaster0:name=%s,status=%s,address=%s:%s,slaves=0,sentinels=1\r\n",
		redisVersion, s.protocol.config.Version, cell.Name, status, host, port))
}

func sentinelRole(s *session, _ *broker.Tx, _ [][]byte) error {
	s.array(2)
	s.bulkString("sentinel")
	s.array(1)
	return s.bulkString(s.protocol.cell.Name)
}

// sentinelMasters replies with the cell, if a node owns its queues.
func sentinelMasters(s *session, _ *broker.Tx, _ [][]byte) error {
	if _, port := s.owner(); port == "" {
		return s.array(0)
	}
	s.array(1)
	return s.master()
}

func (s *session) master() error {
	host, port := s.owner()
	if port == "" {
		return failure("ERR no node owns the queues now: ask again")
	}
	pairs := []string{"name", s.protocol.cell.Name, "ip", host, "port", port, "flags", "master", "role-reported", "master",
		"num-slaves", "0", "num-other-sentinels", "0", "quorum", "1"}
	s.mapHeader(len(pairs) / 2)
	return s.bulkString(pairs...)
}

func sentinelAddress(s *session, _ *broker.Tx, args [][]byte) error {
	host, port := s.owner()
	if port == "" || string(args[2]) != s.protocol.cell.Name {
		return s.nullArray()
	}
	s.array(2)
	return s.bulkString(host, port)
}

// quorum tells whether a majority of the nodes is there: else no node owns the queues.
func (s *session) quorum() error {
	if _, port := s.owner(); port == "" {
		return failure("NOQUORUM no node owns the queues now")
	}
	return s.simple("OK 1 usable Sentinels. Quorum and failover authorization can be reached")
}

// Switched tells those who listen that another node owns the queues, if Cell.Owner says so. The
// loop's goroutine calls it.
func (p *Protocol) Switched() {
	c := p.cell
	now := c.Owner()
	if now == "" || now == c.told {
		return
	}
	text := []byte(strings.Join([]string{c.Name, spaced(cmp.Or(c.told, now)), spaced(now)}, " "))
	c.told = now
	channel := []byte("+switch-master")
	tell := func(listeners []*session, words ...[]byte) {
		var m message
		for _, t := range listeners {
			if t.known() {
				t.peer.Send(m.of(t, append(words, channel, text)...))
			}
		}
	}
	tell(p.pubsub.channels.listeners(channel), []byte("message"))
	steps := maxSteps
	for _, t := range p.pubsub.patterns.slots {
		if t.pattern.Match(channel, &steps) {
			tell(t.listeners, []byte("pmessage"), []byte(t.name))
		}
	}
}

// spaced is HOST:PORT as two words.
func spaced(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	return host + " " + port
}
