package metrics

import "time"

// Node is how a node of a cell is, as it knows itself and the others.
type Node struct {
	Role      string          // one of roles
	Epoch     uint64          // of the last batch that it has: one more with each owner
	Lag       uint64          // batches of the log that it has not applied
	Behind    time.Duration   // since it had all that there was; 0 if that was just now
	Margin    time.Duration   // for which it may still answer as the owner, unless its claim is kept
	Takeovers uint64          // that it has seen since its start
	Spare     int             // nodes that may be lost now, and the queues still have an owner
	Ahead     time.Duration   // its clock, of the middle one of all nodes
	Clock     time.Duration   // the cell's clock, of this node's own; 0 where it does not own the queues
	Others    map[string]bool // whether other nodes were heard of lately, by name
}

// roles are those of a node, in the order in which it gets them.
var roles = []string{"starting", "joining", "learner", "follower", "owner"}

var (
	nodeRole   = desc("node_role", "1 for what a node of a cell is now, 0 for what else it can be.", "role")
	nodeLag    = desc("node_lag_batches", "Batches of the cell's log that the node has not applied.")
	nodeBehind = desc("node_lag_seconds", "Time since the node had all batches that there were.")
	nodeMargin = desc("node_lease_margin_seconds", "For how long the node may still answer as the owner, unless its claim is kept; 0 on others.")
	cellAhead  = desc("cell_clock_ahead_seconds", "How far the clock of the cell is ahead of the owner's own.")
	nodeAhead  = desc("node_clock_ahead_seconds", "How far the node's clock is ahead of the middle one of all nodes.")
	cellEpoch  = desc("cell_epoch", "Number of the ownership that the node's last batch is of.")
	cellSwitch = desc("cell_takeovers_total", "Takeovers that the node has seen.")
	cellSpare  = desc("cell_spare_nodes", "How many nodes may be lost now, and the queues still have an owner.")
	cellHeard  = desc("cell_node_up", "1 if another node was heard of within some 10 s.", "node")
)

func (p page) node(n Node) {
	for _, role := range roles {
		p.gauge(nodeRole, truth(role == n.Role), role)
	}
	p.gauge(nodeLag, float64(n.Lag))
	p.gauge(nodeBehind, n.Behind.Seconds())
	p.gauge(nodeMargin, max(0, n.Margin).Seconds())
	p.gauge(nodeAhead, n.Ahead.Seconds())
	p.gauge(cellAhead, n.Clock.Seconds())
	p.gauge(cellEpoch, float64(n.Epoch))
	p.counter(cellSwitch, float64(n.Takeovers))
	p.gauge(cellSpare, float64(n.Spare))
	for name, up := range n.Others {
		p.gauge(cellHeard, truth(up), name)
	}
}
