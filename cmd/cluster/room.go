package cluster

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

const (
	roomPause = time.Second            // until it is looked at again
	pushWait  = 100 * time.Millisecond // until a push may be let in
	// leastRoom is what a disk must have free, besides twice etcd's database: etcd ends when a write
	// of its own fails.
	leastRoom = 256 << 20
	keepLog   = 128 << 20        // of etcd's database, for nodes that are away
	startRoom = 320 << 20        // for etcd's own log, too
	farBehind = 1000             // batches of the log that a node has not taken
	holdTime  = 30 * time.Second // for which a voter that has copied may keep pushes waiting, below 0.4 of the quota
)

// room is what an owner may take.
type room struct {
	level storage.Level
	wait  time.Duration // of pushes
}

// lookAtRoom looks at the room that the cell has, until ctx ends.
func (n *node) lookAtRoom(ctx context.Context) {
	for since := (time.Time{}); ctx.Err() == nil; wait(ctx, roomPause) { // when pushes began to wait; zero: they do not
		once, cancel := context.WithTimeout(ctx, roomPause)
		s, err := n.log.Status(once)
		about, other := n.nodes(once)
		if cancel(); err != nil || !s.Majority || other != nil {
			continue // without a majority nothing is taken
		}
		about[n.Node] = n.about()
		used := n.member.Used()
		r, lag := roomOf(used, s.Members, about)
		switch {
		case r.wait == 0:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
			n.logger.Warn("pushes wait: the log is not cut", "nodes_that_lag", lag)
		}
		if r.wait > 0 {
			n.letGo(ctx, s.Members, isLate(used, time.Since(since)))
		}
		n.room.Store(&r)
	}
}

// isLate says that pushes have waited so long, or the log is so large, that no voter may hold it.
func isLate(used float64, waited time.Duration) bool { return used > 0.4 || waited > holdTime }

const (
	releaseTime = 30 * time.Second // etcd's releaseDelayAfterSnapshot
	pacedRate   = 10 << 20         // bytes a second
)

// paced appends slowly while etcd's leader keeps in memory all that comes: for half a minute
// behind a snapshot that it sent. The end of ctx, or of the term, ends a wait.
func (n *node) paced(ctx context.Context, appends storage.Term, ended <-chan struct{}) storage.Term {
	return func(batch uint64, content [][]byte) error {
		begun := time.Now()
		if err := appends(batch, content); err != nil || !n.catchUp.Load() {
			return err
		}
		size := time.Duration(0)
		for _, b := range content {
			size += time.Duration(len(b))
		}
		select {
		case <-time.After(size*time.Second/pacedRate - time.Since(begun)):
		case <-ended:
		case <-ctx.Done():
		}
		return nil
	}
}

// letGo ends the holds of nodes without a vote, which must not stop those that have one. Where it
// is late it ends those of voters, too: the disk of one may be full or hang. When the log was cut
// they copy again, and cannot claim before: the log begins behind their tables.
func (n *node) letGo(ctx context.Context, members []cell.Peer, isLate bool) {
	ctx, cancel := context.WithTimeout(ctx, roomPause)
	defer cancel()
	for _, m := range members {
		if m.Learner || isLate {
			_ = n.log.EndHold(ctx, m.Name) // the next look is the next try
		}
	}
}

// allows is daemon.Term.Room.
func (n *node) allows() (storage.Level, time.Duration) {
	r := n.room.Load()
	return r.level, r.wait
}

// roomOf says what the cell has room for, and which nodes keep the log from being cut: others have
// more in tables. etcd's database must never reach its quota, and pops fill it, too.
func roomOf(used float64, members []cell.Peer, about map[string]peer.Node) (r room, lag []string) {
	members = slices.SortedStableFunc(slices.Values(members), func(a, b cell.Peer) int {
		return cmp.Compare(about[a.Name].Floor, about[b.Name].Floor)
	})
	voters, roomy := 0, 0
	for _, m := range members {
		if !m.Learner {
			voters++
			if hasRoom(about[m.Name]) {
				roomy++
			}
		}
	}
	for _, m := range members[:(len(members)+1)/2] {
		lag = append(lag, m.Name)
	}
	switch {
	case used > 0.5:
		r.level = storage.Stop
	case roomy <= voters/2:
		r.level = storage.NoPush
	}
	if used > 0.25 {
		r.wait = pushWait
	}
	return r, lag
}

// hasRoom says whether a node has room for what etcd writes. One that says nothing has none.
func hasRoom(a peer.Node) bool { return a.Room > roomFor(a) }

func roomFor(a peer.Node) int64 { return leastRoom + 2*a.Database }

// isTight says that a node had better look for room, before pushes are refused.
func isTight(a peer.Node) bool { return a.Room < 2*roomFor(a) }

// isSlow says that another node had better claim: this one has to take much of the log, or has
// little room.
func (n *node) isSlow(ctx context.Context, store *storage.Store) bool {
	ctx, cancel := context.WithTimeout(ctx, claimPause)
	defer cancel()
	s, _ := n.log.Status(ctx) // without it the claim tells
	return s.Head > store.Control().Batch+farBehind || !hasRoom(n.about())
}
