package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

// changePause is how often a change looks whether it can go on.
const changePause = 100 * time.Millisecond

// Remove implements admin.Nodes. It waits until a majority of those that stay have in their tables
// what the log no longer has: without that none of them could claim.
func (n *node) Remove(ctx context.Context, name string) error {
	c, err := n.Status(ctx)
	if err == nil {
		err = removable(&c, name)
	}
	if err != nil {
		return err
	}
	cut, free, err := n.log.HoldCut(ctx, name)
	if err != nil {
		return err
	}
	defer free()
	for {
		if c, err = n.Status(ctx); err == nil {
			err = removable(&c, name)
		}
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("too few of the nodes that stay have all in tables up to batch %d: try again later", cut)
		case err != nil:
			return err
		case reach(c.Nodes, name, cut):
			return n.outcome(ctx, name, n.member.Remove(ctx, name))
		}
		wait(ctx, changePause)
	}
}

// outcome looks whether a node that was to be removed is gone, where the removal failed: etcd may
// have done it, and not answered.
func (n *node) outcome(ctx context.Context, name string, failed error) error {
	if failed == nil {
		return nil
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	s, err := n.log.Status(look)
	is := slices.ContainsFunc(s.Members, func(m cell.Peer) bool { return m.Name == name })
	switch {
	case err != nil || !s.Majority || is && ctx.Err() != nil: // what was asked for may come yet
		return fmt.Errorf("%w: the status tells whether the cell has node %s: %w", admin.ErrUnknown, name, failed)
	case is:
		return failed
	}
	return nil
}

// vacate makes room in the cell for a node that joins. One of its name that lives stays; another
// one goes by the rule of Remove. Who joins must be where the others will dial it: one that was
// started under a wrong name, or is a copy of another machine, mostly is not.
func (n *node) vacate(ctx context.Context, name, address, process string) error {
	s, err := n.log.Status(ctx)
	if err != nil {
		return err
	}
	is := -1
	for i, m := range s.Members {
		switch {
		case m.Name == name:
			is = i
		case m.Learner && m.Name != address:
			return fmt.Errorf("node %s joins the cell now: one joins after the other", m.Name)
		}
	}
	if is >= 0 && s.Members[is].Address != address {
		if err := n.joins(ctx, name, s.Members[is].Address, process); errors.Is(err, errLives) {
			return err
		}
	}
	if err := n.joins(ctx, name, address, process); err != nil || is < 0 {
		return err
	}
	return n.Remove(ctx, name)
}

var errLives = errors.New("the name is taken")

// joins returns nil if the process that joins answers at an address. errLives: another one does,
// which is of the cell or joins as well: two of them would have one member's id.
func (n *node) joins(ctx context.Context, name, address, process string) error {
	own, err := peer.NextPort(address)
	if err != nil {
		return err
	}
	a, err := n.ask(ctx, own)
	switch {
	case err != nil:
		return fmt.Errorf("node %s does not answer at %s, where the others dial it, and joins once it does: %w", name, own, err)
	case a.Name != name:
		return fmt.Errorf("node %s answers at %s, and not %s: which of them is at that address?", a.Name, own, name)
	case a.Role != joining:
		return fmt.Errorf("%w: node %s runs at %s, and is %s: stop it, or give the one that joins another name", errLives, name, address, a.Role)
	case a.Process != process:
		return fmt.Errorf("%w: another machine joins as %s at %s: stop one of them", errLives, name, address)
	}
	return nil
}

// removable tells why a node cannot be removed now; nil if it can.
func removable(c *admin.Cluster, name string) error {
	stay := without(c.Nodes, name)
	switch {
	case !c.Majority:
		return errors.New("no majority of the nodes answers: without one none can be removed")
	case len(stay) == len(c.Nodes):
		return fmt.Errorf("the cell has no node %q", name)
	case name == c.Owner:
		return fmt.Errorf("node %s owns the queues: hand them over to another node first", name)
	case name == c.By:
		return fmt.Errorf("node %s does not remove itself: ask another node", name)
	case spare(stay, isHeard) < 0:
		return fmt.Errorf("too few of the nodes that would stay answer: node %s is still needed for a majority", name)
	}
	return nil
}

func without(nodes []admin.Node, name string) []admin.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(at admin.Node) bool { return at.Name == name })
}

// reach says whether the tables of a majority of those that stay have all up to a batch.
func reach(nodes []admin.Node, name string, batch uint64) bool {
	return spare(without(nodes, name), func(at admin.Node) bool { return at.Floor >= batch }) >= 0
}

// closeEnough is how far a node may be behind that takes over, in milliseconds.
const closeEnough = 1000

// HandOver implements admin.Nodes. It waits until the node serves.
func (n *node) HandOver(ctx context.Context, name string) error {
	before, err := n.Status(ctx)
	if err == nil {
		err = takesOver(&before, name)
	}
	if err == nil {
		err = n.log.HandOver(ctx, before.Fence, name)
	}
	for err == nil {
		wait(ctx, changePause)
		var c admin.Cluster
		c, err = n.Status(ctx)
		i := slices.IndexFunc(c.Nodes, func(at admin.Node) bool { return at.Name == name && at.Role == owning })
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: node %s does not serve yet: look at it with the status", admin.ErrUnknown, name)
		case c.Owner == name && i >= 0:
			return nil
		case c.Owner != "" && c.Owner != name && c.Fence != before.Fence:
			return fmt.Errorf("node %s did not claim in time: %s owns the queues now", name, c.Owner)
		}
	}
	return err
}

// handOn has the best of the others own the queues before this node, which owns, ends. It waits
// until ctx ends by that. Where none can, the claim is given back at the end.
func (n *node) handOn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	c, err := n.Status(ctx)
	if err != nil || c.Owner != n.Node {
		return
	}
	fit := slices.DeleteFunc(slices.Clone(c.Nodes), func(at admin.Node) bool { return takesOver(&c, at.Name) != nil })
	if len(fit) == 0 {
		return
	}
	best := slices.MinFunc(fit, func(a, b admin.Node) int { return cmp.Compare(a.Lag, b.Lag) })
	if n.log.HandOver(ctx, c.Fence, best.Name) == nil {
		<-ctx.Done()
	}
}

// takesOver tells why the queues cannot be handed over to a node now; nil if they can.
func takesOver(c *admin.Cluster, name string) error {
	i := slices.IndexFunc(c.Nodes, func(at admin.Node) bool { return at.Name == name })
	switch {
	case !c.Majority || c.Owner == "":
		return errors.New("no node owns the queues, so nothing can be handed over")
	case i < 0:
		return fmt.Errorf("the cell has no node %q", name)
	case name == c.Owner:
		return fmt.Errorf("node %s owns the queues already", name)
	case !c.Nodes[i].Heard:
		return fmt.Errorf("node %s does not answer", name)
	case c.Nodes[i].Role != follower:
		return fmt.Errorf("node %s is %s: expected a %s", name, c.Nodes[i].Role, follower)
	case c.Nodes[i].Lag > farBehind:
		return fmt.Errorf("node %s is %d batches behind: expected at most %d", name, c.Nodes[i].Lag, farBehind)
	case c.Nodes[i].LagMS > closeEnough:
		return fmt.Errorf("node %s is %d ms behind: expected at most %d", name, c.Nodes[i].LagMS, closeEnough)
	}
	return nil
}
