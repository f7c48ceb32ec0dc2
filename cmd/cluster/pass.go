package cluster

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
)

const (
	// keepTime is how long a client is kept that waits for this node to own.
	keepTime = 5 * time.Second
	// silentTime is how long the owner may not answer this node before that is of no use to clients.
	silentTime = 2 * time.Second
)

// passOn has clients passed on to the owner, until passNobody or the end of ctx: from the start of
// the process to its end, but in a term of this node. It needs neither the folder nor etcd.
func (n *node) passOn(ctx context.Context) error {
	if n.passing != nil {
		return nil
	}
	ctx, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	n.passing = func() {
		end()
		running.Wait()
	}
	running.Go(func() { n.heed(ctx) })
	running.Go(func() { n.owner.Attend(ctx, n.client) })
	running.Go(func() { n.owner.Ask(ctx, n.client) })
	for door, socket := range n.server.Doors() {
		l, err := peer.Duplicate(socket)
		if err != nil {
			n.passNobody()
			return err
		}
		f := peer.Forwarder{Client: n.client, Owner: n.owner, Door: door, MaxConns: n.server.MaxPassed(), Logger: n.braked, Own: n.keep(door)}
		running.Go(func() { f.Forward(ctx, l) })
	}
	return nil
}

// passNobody ends what passOn began. Clients that wait for an owner are kept for a term.
func (n *node) passNobody() {
	if n.passing != nil {
		n.passing()
		n.passing = nil
	}
}

// heed has clients passed to whoever owns. Before this etcd is there the other nodes say who.
func (n *node) heed(ctx context.Context) {
	for ctx.Err() == nil {
		if !n.entered.Load() {
			n.owner.Set(n.serving(ctx))
			wait(ctx, claimPause)
			continue
		}
		owner, err := n.log.Owner(ctx)
		if err == nil {
			if owner.Node != n.Node { // such a claim is of a term that is over, or begins
				n.knows(owner)
			}
			_, err = n.log.OwnerChanged(ctx, owner)
		}
		if err != nil {
			wait(ctx, claimPause)
		}
	}
}

// serving is the address of the other node that owns; "" if none says so.
func (n *node) serving(ctx context.Context) string {
	for _, address := range n.others() {
		if a, err := n.ask(ctx, address); err == nil && a.Role == owning {
			return address
		}
	}
	return ""
}

// keep is peer.Forwarder.Own: it serves a client at a door of the term that begins.
func (n *node) keep(door string) func(*net.TCPConn) {
	return func(client *net.TCPConn) {
		for begun := time.Now(); !n.server.Serves() && time.Since(begun) < keepTime; {
			time.Sleep(probePause / 4)
		}
		n.pass(door, client, client.RemoteAddr().(*net.TCPAddr).AddrPort())
	}
}
