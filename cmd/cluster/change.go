package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/admin"
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
			return n.member.Remove(ctx, name)
		}
		wait(ctx, changePause)
	}
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
	case spare(stay) < 0:
		return fmt.Errorf("too few of the nodes that would stay answer: node %s is still needed for a majority", name)
	}
	return nil
}

func without(nodes []admin.Node, name string) []admin.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(at admin.Node) bool { return at.Name == name })
}

// reach says whether the tables of a majority of those that stay have all up to a batch.
func reach(nodes []admin.Node, name string, batch uint64) bool {
	stay := without(nodes, name)
	for i := range stay {
		stay[i].Heard = stay[i].Floor >= batch
	}
	return spare(stay) >= 0
}
