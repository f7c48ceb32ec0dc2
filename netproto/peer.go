package netproto

import (
	"net"

	"github.com/holdfast-queue/holdfast/broker"
)

// Peer is one connection as its session and the broker see it: a consumer, and the receiver of the
// consumer's replies and deliveries. The connection's reader owns it. The methods of
// broker.Receiver, and resume, are for others.
type Peer struct {
	broker   *broker.Broker
	consumer *broker.Conn
	out      *output
	session  Session
	unsynced bool   // Send was called since the last flush
	wake     func() // tells the reader that its request no longer waits; set before the first use
}

func newPeer(p Protocol, b *broker.Broker, out *output) *Peer {
	peer := &Peer{broker: b, out: out}
	peer.consumer = b.Attach(peer, p.Delivery())
	out.onProgress = peer.resume
	peer.session = p.Open(peer)
	return peer
}

// Consumer is whom the broker answers.
func (p *Peer) Consumer() *broker.Conn { return p.consumer }

// Full says that Serve should stop early: many bytes of replies are queued, and should leave first.
func (p *Peer) Full() bool { return p.consumer.QueuedBytes() >= broker.MaxOutstandingBytes }

// Send replies with bytes that wait for no batch. A session calls it during Serve, and only while
// its consumer is idle: otherwise they would overtake queued replies.
func (p *Peer) Send(data []byte) {
	p.out.append(func(dst []byte) []byte { return append(dst, data...) })
	p.unsynced = true
}

// Kill ends the connection at once. Any goroutine may call it.
func (p *Peer) Kill() { p.out.close() }

// Remote is the address of the client.
func (p *Peer) Remote() net.Addr { return p.out.conn.RemoteAddr() }

// Local is the address that the client connected to.
func (p *Peer) Local() net.Addr { return p.out.conn.LocalAddr() }

// OutstandingBytes is how much the client has not been sent yet. Any goroutine may ask.
func (p *Peer) OutstandingBytes() int64 { return p.consumer.QueuedBytes() + p.out.unwrittenBytes() }

// serve carries out requests at the start of buf in one transaction, so that a pipeline takes the
// broker's lock once.
func (p *Peer) serve(buf []byte) (n int, stop Stop, err error) {
	err = p.broker.Do(func(tx *broker.Tx) error {
		var err error
		tx.As(p.consumer)
		n, stop, err = p.session.Serve(tx, buf)
		return err
	})
	if p.unsynced { // after the transaction: nobody waits for the broker's lock during a system call
		p.unsynced = false
		p.out.flush()
	}
	return n, stop, err
}

// waiting says that a request waits for a packet (Blocked).
func (p *Peer) waiting() bool { return p.consumer.Waiting() }

// waitBelow blocks until fewer than limit bytes are outstanding. It returns false if the connection
// has ended.
func (p *Peer) waitBelow(limit int64) bool { return p.out.waitBelow(limit, p.consumer.QueuedBytes) }

// close detaches the consumer, after a last reply if there is one. The connection ends when
// everything queued for it has left, or at once if it is dead.
func (p *Peer) close(dead bool, last []byte) {
	queued := false
	_ = p.broker.Do(func(tx *broker.Tx) error {
		if c, ok := p.session.(Closer); ok {
			c.Close(tx)
		}
		if last != nil {
			_ = tx.Begin()
			tx.Reply(p.consumer, last)
		}
		queued = tx.Detach(p.consumer)
		return nil
	})
	switch {
	case dead:
		p.out.close()
	case !queued:
		p.out.finish()
		p.out.flush()
	}
}

// Packets implements broker.Receiver.
func (p *Peer) Packets(tag broker.Tag, packets []broker.Packet, details []broker.Detail) {
	p.out.append(func(dst []byte) []byte { return p.session.AppendPackets(dst, tag, packets, details) })
}

// Reply implements broker.Receiver.
func (p *Peer) Reply(data []byte) {
	p.out.append(func(dst []byte) []byte { return append(dst, data...) })
}

// Finish implements broker.Receiver.
func (p *Peer) Finish() { p.out.finish() }

// Flush implements broker.Receiver.
func (p *Peer) Flush() {
	p.out.flush()
	if p.consumer.CaughtUp() {
		go p.broker.Resume(p.consumer) // ends when it had the broker's lock once
	}
}

// WaitEnded implements broker.Receiver.
func (p *Peer) WaitEnded() { p.wake() }

// UnwrittenBytes implements broker.Receiver.
func (p *Peer) UnwrittenBytes() int64 { return p.out.unwrittenBytes() }

// Address implements broker.Receiver.
func (p *Peer) Address() string { return p.Remote().String() }

// resume asks for deliveries again once a slow peer has caught up.
func (p *Peer) resume() {
	if p.consumer.CaughtUp() {
		p.broker.Resume(p.consumer)
	}
}
