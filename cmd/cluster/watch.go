package cluster

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/daemon/metrics"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

const maxBehind = 10 * time.Second // beyond which a node lags

// watch is what a node sees of its cell, each time that it tells others of itself. It belongs to
// one goroutine.
type watch struct {
	*node
	head uint64    // of the log at an earlier look; the node has all up to it
	at   time.Time // of the look
}

// nodes are those that were heard of within 10 s, by name, as the node's own member knows them.
func (n *node) nodes(ctx context.Context) map[string]peer.Node {
	found := make(map[string]peer.Node)
	all, _ := n.log.Nodes(ctx)
	for name, b := range all {
		var a peer.Node
		if json.Unmarshal(b, &a) == nil {
			found[name] = a
		}
	}
	return found
}

// look looks at the cell. There are no members where no majority answers.
func (w *watch) look(ctx context.Context, members []cell.Peer) {
	nodes := make(map[string]peer.Node)
	if members != nil { // without a majority nodes that are gone are not forgotten
		nodes = w.nodes(ctx)
	}
	seen, me := metrics.Node{Others: make(map[string]bool)}, w.about()
	if head, err := w.log.Head(ctx); err == nil {
		if me.Batch >= w.head && members != nil {
			w.head, w.at = head, time.Now()
		}
		seen.Lag = head - min(head, me.Batch)
	}
	if seen.Lag > 0 || members == nil {
		seen.Behind = time.Since(w.at)
	}
	me.Behind = seen.Behind.Milliseconds()
	nodes[w.Node] = me
	voters, well := 0, 0
	for _, m := range members {
		a, up := nodes[m.Name]
		if m.Name != w.Node && m.Name != "" { // it has started once
			seen.Others[m.Name] = up
		}
		if m.Learner {
			continue
		}
		voters++
		if (a.Role == follower || a.Role == owning) && !lags(a) {
			well++
		}
	}
	seen.Spare = max(0, well-(voters/2+1))
	seen.Ahead = ahead(me, nodes)
	w.seen.Store(&seen)
	w.alone.Store(members == nil)
}

func lags(a peer.Node) bool { return a.Behind > maxBehind.Milliseconds() }

// middle is the middle one of the nodes' clocks, in Unix milliseconds.
func middle(nodes map[string]peer.Node) int64 {
	var clocks []int64
	for _, a := range nodes {
		clocks = append(clocks, a.Clock)
	}
	slices.Sort(clocks)
	return clocks[len(clocks)/2]
}

// ahead is how far the clock of a node is ahead of the middle one, to about two seconds.
func ahead(a peer.Node, nodes map[string]peer.Node) time.Duration {
	return time.Duration(a.Clock-middle(nodes)) * time.Millisecond
}
