package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

// Status implements admin.Nodes. Nodes are asked behind the log, so one that has all does not lag.
func (n *node) Status(ctx context.Context) (c admin.Cluster, err error) {
	if !n.entered.Load() {
		return c, fmt.Errorf("node %s is %s: ask another one", n.Node, n.role.Load())
	}
	s, err := n.log.Status(ctx)
	if err != nil {
		return c, err
	}
	slices.SortFunc(s.Members, func(a, b cell.Peer) int { return strings.Compare(a.Name, b.Name) })
	c = admin.Cluster{
		Cell: n.cell, ID: n.member.Cell(), By: n.Node, Majority: s.Majority,
		Owner: s.Owner.Node, Fence: s.Owner.Fence, Leader: n.member.Leader(), Head: s.Head, Cut: s.Cut, Nodes: make([]admin.Node, len(s.Members)),
	}
	var asking sync.WaitGroup
	for i, m := range s.Members {
		asking.Go(func() { c.Nodes[i] = n.look(ctx, m) })
	}
	asking.Wait()
	for i := range c.Nodes {
		at := &c.Nodes[i]
		at.Floor = s.Floors[at.Name]
		if at.Heard && at.Batch < s.Head {
			at.Lag = s.Head - at.Batch
		} else { // it has caught up since it looked
			at.LagMS = 0
		}
		if at.Name == c.Owner {
			c.ClockMS = at.TermMS
		}
	}
	c.Spare = max(0, spare(c.Nodes, hasQueues))
	return c, nil
}

// look asks a member what it is.
func (n *node) look(ctx context.Context, m cell.Peer) (at admin.Node) {
	at = admin.Node{Name: m.Name, Address: m.Address, Voter: !m.Learner}
	sent := time.Now()
	var a peer.Node
	var err error
	if m.Name == n.Node {
		a = n.about()
	} else {
		own, _ := peer.NextPort(m.Address) // whose error is one of the call, too
		a, err = n.ask(ctx, own)
	}
	if err != nil {
		return at
	}
	at.Heard, at.Role, at.Batch, at.LagMS, at.Epoch, at.Room, at.Version = true, a.Role, a.Batch, a.Behind, a.Epoch, a.Room, a.Version
	now := sent.Add(time.Since(sent) / 2).UnixMilli()
	if at.ClockMS = a.Clock - now; a.Term != 0 {
		at.TermMS = a.Term - now
	}
	return at
}

// spare is how many of some nodes may be lost so that a majority is left of which something is so;
// negative: how many lack.
func spare(nodes []admin.Node, is func(at admin.Node) bool) int {
	voters, well := 0, 0
	for _, at := range nodes {
		if at.Voter {
			voters++
			if is(at) {
				well++
			}
		}
	}
	return well - voters/2 - 1
}

func isHeard(at admin.Node) bool { return at.Heard }

// hasQueues is not so of a node that starts, copies, or lags. One that has just started does not
// know yet for how long it lags.
func hasQueues(at admin.Node) bool {
	return at.Heard && isWell(at.Role, at.LagMS) && at.Lag <= farBehind
}
