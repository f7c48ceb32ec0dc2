package cluster

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

const (
	roomPause = time.Second            // until it is looked at again
	pushWait  = 100 * time.Millisecond // until a push may be let in
	// leastRoom is what a disk must have free, besides twice etcd's database: etcd ends when a write of
	// its own fails.
	leastRoom = 256 << 20
	startRoom = 320 << 20 // for etcd's own log, too
	farBehind = 1000      // batches of the log that a node has not taken
)

// room is what an owner may take.
type room struct {
	level storage.Level
	wait  time.Duration // of pushes
}

// lookAtRoom looks at the room that the cell has, until ctx ends.
func (n *node) lookAtRoom(ctx context.Context) {
	for told := false; ctx.Err() == nil; wait(ctx, roomPause) {
		once, cancel := context.WithTimeout(ctx, roomPause)
		members, err := n.member.Members(once)
		var said map[string][]byte
		if err == nil {
			said, err = n.log.Nodes(once)
		}
		if cancel(); err != nil {
			continue // without a majority nothing is taken
		}
		about := make(map[string]peer.Node)
		for name, b := range said {
			var a peer.Node
			if json.Unmarshal(b, &a) == nil {
				about[name] = a
			}
		}
		about[n.Node] = n.about()
		r, lag := roomOf(n.member.InUse(), n.member.Quota(), members, about)
		if r.wait > 0 && !told {
			n.logger.Warn("pushes wait: the log is not cut", "nodes_that_lag", lag, "mib", n.member.InUse()>>20)
		}
		told = r.wait > 0
		n.room.Store(&r)
	}
}

// allows is daemon.Term.Room.
func (n *node) allows() (storage.Level, time.Duration) {
	r := n.room.Load()
	return r.level, r.wait
}

// roomOf says what the cell has room for, and which nodes keep the log from being cut: their tables
// have no more than it needs. etcd's database must never reach its quota, and pops fill it, too.
func roomOf(used, quota int64, members []cell.Peer, about map[string]peer.Node) (r room, lag []string) {
	var floors []uint64
	roomy := 0
	for _, m := range members {
		if !m.Learner {
			floors = append(floors, about[m.Name].Floor)
			if hasRoom(about[m.Name]) {
				roomy++
			}
		}
	}
	slices.Sort(floors)
	for _, m := range members {
		if about[m.Name].Floor <= floors[(len(floors)-1)/2] {
			lag = append(lag, m.Name)
		}
	}
	slices.Sort(lag)
	switch {
	case used > quota/2:
		r.level = storage.Stop
	case roomy <= len(floors)/2:
		r.level = storage.NoPush
	}
	if used > quota/4 {
		r.wait = pushWait
	}
	return r, lag
}

// hasRoom says whether a node has room for what etcd writes. One that says nothing has none.
func hasRoom(a peer.Node) bool { return a.Room > leastRoom+2*a.Database }

// isSlow says that another node had better claim: this one has to take much of the log, or has
// little room.
func (n *node) isSlow(ctx context.Context, store *storage.Store) bool {
	ctx, cancel := context.WithTimeout(ctx, claimPause)
	defer cancel()
	_, last, _ := n.log.Bounds(ctx) // without it the claim tells
	return last > store.Control().Batch+farBehind || !hasRoom(n.about())
}
