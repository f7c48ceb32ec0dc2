package netproto

import (
	"net"
	"net/netip"

	"github.com/holdfast-queue/holdfast/broker"
)

// Peer is a connection as its session sees it.
type Peer struct {
	// Out is what goes to the client. A session appends its replies. They leave when all is on disk
	// that was changed until then, in any session. Serve, Deliver and Again may write it, and Send.
	Out []byte
	c   *conn
}

// Consumer is whom the broker knows.
func (p *Peer) Consumer() *broker.Conn { return p.c.consumer }

// Full says that Serve should stop early: many bytes wait to leave, and should do so first.
func (p *Peer) Full() bool { return p.c.Unsent() >= broker.MaxOutstandingBytes }

// Late says that Serve should stop early: this run of requests has taken 2 ms. Serve asks behind
// each request. quick says that this one took no longer than the shortest: the clock is looked at
// behind some of those only.
func (p *Peer) Late(quick bool) bool {
	l := p.c.loop
	if l.served++; quick && l.served < maxUntimed {
		return false
	}
	l.looked, l.served = l.steady(), 0
	return l.looked-p.c.runs >= maxRun.Milliseconds()
}

// Announce says how many bytes the request that is not complete has, as far as that is known. Serve
// calls it. The buffer grows to that, as bytes arrive. If it is more than LongRequest, no more is
// read until there is room for all of it.
func (p *Peer) Announce(n int) { p.c.announced = n }

// Send adds a message behind Out. A session calls it for another one, which is not served now. It
// may end what that one waits for.
func (p *Peer) Send(m *Message) {
	if len(m.bytes) > maxCopied {
		p.c.share(m)
	} else {
		p.Out = m.Append(p.Out)
	}
	p.c.touch()
	if p.c.untried() {
		p.c.loop.again(p.c)
	}
}

// Post has the loop run fn in one of its turns, unless the loop has ended. The connection may have.
// Any goroutine may call it.
func (p *Peer) Post(fn func(tx *broker.Tx)) {
	l := p.c.loop
	l.post(func() {
		if !l.isOver() {
			fn(l.tx)
		}
	})
}

// Hold notes that the session keeps n bytes more, or fewer, until it is closed. If all connections
// keep too much then, those with the most are closed.
func (p *Peer) Hold(n int) {
	p.c.held += n
	p.c.server.config.Buffers.count(p.c)
}

// Owe is like Hold, of a reply that is not whole. Like one that is being read it is spared longer.
func (p *Peer) Owe(n int) {
	p.c.owed += n
	p.c.server.config.Buffers.count(p.c)
}

// Held returns how many bytes Hold and Owe were told, together.
func (p *Peer) Held() int { return p.c.held + p.c.owed }

// Unsent is how many bytes go to the client and have not left yet.
func (p *Peer) Unsent() int64 { return p.c.Unsent() }

// Kill ends the connection soon, without sending more.
func (p *Peer) Kill() {
	p.c.broken = true
	p.c.loop.again(p.c)
}

// Remote is the address of the client.
func (p *Peer) Remote() net.Addr { return net.TCPAddrFromAddrPort(p.c.remote) }

// Host is the address of the client, without a port.
func (p *Peer) Host() netip.Addr { return p.c.remote.Addr() }

// Certificate is the common name in the client's certificate, which was verified; "" without one.
func (p *Peer) Certificate() string { return p.c.certificate }

// User is whose the connection is from its start, as Server.Connect was told; "" of all others.
func (p *Peer) User() string { return p.c.user }

// Local is the address that the client connected to. Of one that another machine has accepted, it
// is the one that the server listens on, if it does.
func (p *Peer) Local() net.Addr { return p.c.local }
