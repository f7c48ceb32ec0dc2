package cluster

import (
	"context"
	"encoding/json"
	"log/slog"
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
	moreRoom  = 64 << 20         // than a node needs, before it has enough again: a full cell is about there
)

// watch is what a node sees of its cell, each time that it tells others of itself. It belongs to
// one goroutine.
type watch struct {
	*node
	head uint64          // of the log at an earlier look; the node has all up to it
	at   time.Time       // of the look
	told map[string]bool // what is so, as it was told
}

// nodes are those that were heard of within 10 s, by name, as the node's own member knows them.
func (n *node) nodes(ctx context.Context) (map[string]peer.Node, error) {
	found := make(map[string]peer.Node)
	all, err := n.log.Nodes(ctx)
	for name, b := range all {
		var a peer.Node
		if json.Unmarshal(b, &a) == nil {
			found[name] = a
		}
	}
	return found, err
}

// look looks at the cell, and tells of what has changed.
func (w *watch) look(ctx context.Context, s cell.Status) {
	nodes := make(map[string]peer.Node)
	if s.Majority { // without a majority nodes that are gone are not forgotten
		var err error
		if nodes, err = w.nodes(ctx); err == nil {
			all := slices.Collect(maps.Values(nodes))
			w.catchUp.Store(slices.ContainsFunc(all, func(a peer.Node) bool { return a.Fetched }))
		}
	} else {
		s.Members = nil
	}
	seen, me := metrics.Node{Others: make(map[string]bool)}, w.about()
	if me.Batch >= w.head && s.Majority {
		w.head, w.at = s.Head, time.Now()
	}
	seen.Lag = s.Head - min(s.Head, me.Batch)
	if seen.Lag > 0 || !s.Majority {
		seen.Behind = time.Since(w.at)
	}
	me.Behind = seen.Behind.Milliseconds()
	nodes[w.Node] = me
	voters, well := 0, 0
	for _, m := range s.Members {
		a, up := nodes[m.Name]
		if m.Name != w.Node && m.Name != m.Address { // it has started once
			seen.Others[m.Name] = up
		}
		if m.Learner {
			continue
		}
		voters++
		if isWell(a.Role, a.Behind) {
			well++
		}
	}
	seen.Spare = max(0, well-(voters/2+1))
	seen.Ahead = ahead(me, nodes)
	w.seen.Store(&seen)
	if was := w.alone.Swap(!s.Majority); was && s.Majority { // what happened meanwhile is told at the Sentinel door now
		w.server.Switched()
	}
	begun, ended := w.remark("alone", !s.Majority)
	begun.Warn("no majority of the nodes answers")
	ended.Info("a majority of the nodes answers again")
	silent := me.Role != owning && w.owner.Silent(silentTime)
	begun, ended = w.remark("silent", silent)
	begun.Warn("the owner does not answer: clients of this node are not served", "owner", me.Owner)
	ended.Info("the owner answers again")
	if me.Role == owning {
		w.tellOf(nodes, seen.Others)
	} else { // the next owner tells, or this one again
		w.told = map[string]bool{"alone": !s.Majority, "silent": silent}
	}
}

func lags(behind int64) bool { return behind > maxBehind.Milliseconds() }

// isWell says that a node has the queues, but for a few seconds.
func isWell(role string, behind int64) bool {
	return (role == follower || role == owning) && !lags(behind)
}

// ahead is how far the clock of a node is ahead of the middle one, to about two seconds.
func ahead(a peer.Node, nodes map[string]peer.Node) time.Duration {
	return time.Duration(a.Clock-middle(nodes)) * time.Millisecond
}

// middle is the middle one of the nodes' clocks, in Unix milliseconds.
func middle(nodes map[string]peer.Node) int64 {
	var clocks []int64
	for _, a := range nodes {
		clocks = append(clocks, a.Clock)
	}
	slices.Sort(clocks)
	return clocks[len(clocks)/2]
}

var nobody = slog.New(slog.DiscardHandler)

// remark is of something that may be so now. It returns a log for what has begun, and one for what
// has ended: nobody reads one that is not needed.
func (w *watch) remark(what string, is bool) (begun, ended *slog.Logger) {
	begun, ended = nobody, nobody
	switch was := w.told[what]; {
	case is && !was:
		begun = w.logger
	case was && !is:
		ended = w.logger
	}
	w.told[what] = is
	return begun, ended
}

// tellOf tells of nodes, as the owner does: so each thing is told once.
func (w *watch) tellOf(nodes map[string]peer.Node, others map[string]bool) {
	begun, ended := w.remark("catches up", w.catchUp.Load())
	begun.Info("what is appended is slowed: etcd keeps it in memory, since a node catches up")
	ended.Info("what is appended is slowed no more")
	off := time.Duration(nodes[w.Node].Term-middle(nodes)) * time.Millisecond
	begun, ended = w.remark("clock", nodes[w.Node].Term != 0 && off.Abs() > maxAhead)
	begun.Warn("clock of the cell is off", "ahead", off)
	ended.Info("clock of the cell is right again")
	for name, up := range others {
		begun, ended := w.remark("gone "+name, !up)
		begun.Warn("node is gone", "node", name)
		ended.Info("node is back", "node", name)
	}
	for name, a := range nodes {
		begun, ended := w.remark("lags "+name, lags(a.Behind))
		begun.Warn("node lags", "node", name, "batch", a.Batch, "behind", time.Duration(a.Behind)*time.Millisecond)
		ended.Info("node lags no more", "node", name)
		off := ahead(a, nodes)
		begun, ended = w.remark("clock "+name, off.Abs() > maxAhead)
		begun.Warn("clock of a node is off", "node", name, "ahead", off)
		ended.Info("clock of a node is right again", "node", name)
		begun, ended = w.remark("room "+name, !hasRoom(a) || w.told["room "+name] && a.Room < roomFor(a)+moreRoom)
		begun.Warn("node has too little room: pushes are refused unless a majority has enough", "node", name, "free", a.Room, "expected", roomFor(a))
		ended.Info("node has enough room again", "node", name)
		begun, ended = w.remark("digest "+name, a.Digest != nodes[w.Node].Digest)
		begun.Warn("node has other users or defaults of queues", "node", name)
		ended.Info("node has the same users and defaults of queues again", "node", name)
		begun, ended = w.remark("nodes "+name, a.Nodes != nil && !maps.Equal(a.Nodes, nodes[w.Node].Nodes)) // an earlier version tells none
		begun.Warn("node names other addresses", "node", name, "nodes", a.Nodes)
		ended.Info("node names the same addresses again", "node", name)
	}
}
