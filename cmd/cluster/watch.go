package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/daemon/metrics"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

const (
	maxBehind = 10 * time.Second // beyond which a node lags
	maxAhead  = 30 * time.Second // beyond which a clock is off, either way
)

// watch is what a node sees of its cell, each time that it tells others of itself. It belongs to
// one goroutine.
type watch struct {
	*node
	head    uint64          // of the log at an earlier look; the node has all up to it
	at      time.Time       // of the look
	told    map[string]bool // what was told of and is still so
	digests string          // as they were told, where they differ; "": they do not
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

// look looks at the cell, and tells of what has changed. There are no members where no majority
// answers.
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
	if w.majority(members != nil); me.Role == owning {
		w.tellOf(nodes, seen.Others)
	} else {
		w.told, w.digests = nil, ""
	}
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

// isNew says whether something has begun or ended since the last look.
func (w *watch) isNew(what string, is bool) bool {
	was := w.told[what]
	if w.told == nil {
		w.told = make(map[string]bool)
	}
	w.told[what] = is
	return was != is
}

// majority tells whether a majority answers.
func (w *watch) majority(is bool) {
	if w.alone.Swap(!is) == !is {
		return
	}
	if is {
		w.logger.Info("a majority of the nodes answers again")
	} else {
		w.logger.Warn("no majority of the nodes answers")
	}
}

// tellOf tells of other nodes, as the owner does: so each thing is told once.
func (w *watch) tellOf(nodes map[string]peer.Node, others map[string]bool) {
	for name, up := range others {
		switch {
		case !w.isNew("gone "+name, !up):
		case up:
			w.logger.Info("node is back", "node", name)
		default:
			w.logger.Warn("node is gone", "node", name)
		}
	}
	for name, a := range nodes {
		switch {
		case !w.isNew("lags "+name, lags(a)):
		case lags(a):
			w.logger.Warn("node lags", "node", name, "batch", a.Batch, "behind", time.Duration(a.Behind)*time.Millisecond)
		default:
			w.logger.Info("node lags no more", "node", name)
		}
		off := ahead(a, nodes)
		switch {
		case !w.isNew("clock "+name, off.Abs() > maxAhead):
		case off.Abs() > maxAhead:
			w.logger.Warn("clock of a node is off", "node", name, "ahead", off)
		default:
			w.logger.Info("clock of a node is right again", "node", name)
		}
	}
	w.compare(nodes)
}

// compare tells of nodes whose users or defaults differ, once for each difference.
func (w *watch) compare(nodes map[string]peer.Node) {
	by := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		by[nodes[name].Digest] = append(by[nodes[name].Digest], name)
	}
	said := ""
	if len(by) > 1 {
		said = fmt.Sprint(by)
	}
	switch {
	case w.digests == said:
	case said == "":
		w.logger.Info("nodes have the same users and defaults of queues again")
	default:
		groups := slices.SortedFunc(maps.Values(by), slices.Compare)
		w.logger.Warn("nodes have different users or defaults of queues", "nodes", groups)
	}
	w.digests = said
}
