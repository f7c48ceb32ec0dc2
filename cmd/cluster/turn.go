package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/cell"
	"github.com/holdfast-queue/holdfast/storage/content"
)

const (
	turnPause  = 500 * time.Millisecond // after a turn that ended by an error
	longPause  = 10 * time.Second       // the same at most, after several that could not open the folder, or a hole of the log
	claimPause = time.Second            // after a claim that failed by itself
	leadPause  = 2 * time.Second
	voteTime   = 30 * time.Second // for which one reason keeps a node from its vote before it is told
	// promoteTime is for giving a vote, unless eight elections take longer. The log is not cut for
	// little longer, whoever dies.
	promoteTime = 8 * time.Second
	// handOverPause is how much later others claim than the node to which the queues are handed over.
	handOverPause = 2 * time.Second
	endTime       = 3 * time.Second // that the end of a term waits for etcd
)

// takeTurns has the node follow and own in turn until ctx ends. A turn ends for good: the folder is
// opened again, and nothing is resumed.
func (n *node) takeTurns(ctx context.Context) error {
	if free, _, err := storage.DiskSpace(n.folder); err == nil && free < startRoom {
		n.logger.Warn("the disk has little room for a node: the owner may refuse pushes", "free", free, "expected", startRoom)
	}
	for pause := turnPause; ctx.Err() == nil; {
		err := n.turn(ctx)
		if n.role.Swap(starting) != starting {
			pause = turnPause
		}
		if ended := n.member.Err(); ended != nil || ctx.Err() != nil {
			return ended
		}
		n.logger.Warn("the node begins anew", "reason", err)
		n.checked = n.checked && !errors.Is(err, storage.ErrDamaged)
		if errors.Is(err, daemon.ErrHandOver) {
			continue
		}
		if errors.Is(err, cell.ErrCut) || errors.Is(err, storage.ErrLoss) {
			n.copy(ctx)
		} else if hole := errors.Is(err, cell.ErrDamaged); hole || errors.Is(err, storage.ErrDamaged) {
			least := uint64(0)
			if hole { // in the log, behind what this node has; damage of the folder may pass, as a read that failed once
				least = n.store.Load().Control().Batch + 1
			}
			if err := n.copyOnce(ctx, least); err != nil {
				n.logger.Warn("no copy of another node's folder", "error", err)
				if hole {
					pause = longPause // another one may claim
				}
			}
		}
		wait(ctx, pause)
		pause = min(2*pause, longPause)
	}
	return n.member.Err()
}

// turn opens the folder, follows until it can own, and owns until that ends.
func (n *node) turn(ctx context.Context) error {
	if err := n.passOn(ctx); err != nil {
		return err
	}
	options := n.server.StorageOptions()
	options.Release = n.log.Release
	options.Checked = n.checked
	store, err := storage.Open(n.folder, options)
	if n.checked = err == nil; err != nil {
		return err
	}
	n.arrived = arrival{}
	n.old.Store(math.MaxUint64)
	n.store.Store(store)
	if !n.member.Votes() { // the log stays until others count on what this node has
		if err := n.log.Hold(ctx, store.Control().Batch); err != nil {
			return errors.Join(err, store.Close())
		}
		n.holds = true
	}
	term, last, err := n.follow(ctx, store)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	n.passNobody()
	err = n.own(ctx, store, term, last)
	_ = n.passOn(ctx) // the next turn is the next try
	return err
}

// taker is the part of a store that follows.
type taker interface {
	Take(batch uint64, b []byte) error
	Control() content.Control
}

// take takes a batch of the log into a store. Where that has no room it waits, as the log does.
func (n *node) take(ctx context.Context, store taker) func(batch uint64, content []byte) error {
	return func(batch uint64, content []byte) error {
		for {
			err := store.Take(batch, content)
			if err == nil {
				n.progress.took.Store(time.Now().UnixNano())
			}
			if err == nil && batch > n.old.Load() {
				n.arrived.note(store.Control().Time)
			}
			if !errors.Is(err, storage.ErrFull) || ctx.Err() != nil {
				return err
			}
			wait(ctx, turnPause)
		}
	}
}

// follow follows until it has claimed.
func (n *node) follow(ctx context.Context, store *storage.Store) (_ *cell.Term, last uint64, err error) {
	n.role.Store(follower)
	following, end := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer func() {
		end(nil)
		running.Wait()
	}()
	running.Go(func() {
		s, err := n.log.Status(following)
		for ; err == nil && !s.Majority; s, err = n.log.Status(following) {
			wait(following, turnPause)
		}
		if err == nil {
			n.old.Store(s.Head)
			err = n.log.Follow(following, store.Control().Batch, n.take(following, store))
		}
		end(err)
	})
	running.Go(func() { n.server.Follow(following, store, n.leader) })
	running.Go(func() { n.endHold(following) })
	for following.Err() == nil {
		owner, err := n.log.Owner(following)
		if err == nil && owner.Node != "" {
			_, _ = n.log.OwnerChanged(following, owner)
			continue
		}
		if err == nil && n.member.Votes() {
			if owner = n.letFirst(following, owner); owner.Node != "" {
				continue
			}
			if n.isSlow(following, store) {
				wait(following, claimPause) // others may
			}
			term, last, err := n.log.Claim(following, store.Control().Batch, n.addresses())
			switch {
			case err == nil:
				n.progress.took.Store(time.Now().UnixNano()) // what runs yet may need a while to end
				return term, last, nil
			case errors.Is(err, cell.ErrOwned):
				continue
			case following.Err() == nil: // such as for a full etcd
				n.logger.Warn("the queues have no owner, and cannot be claimed", "error", err)
			}
		}
		wait(following, claimPause)
	}
	return nil, 0, context.Cause(following)
}

// endHold ends the hold of a copy, which is whole, when the node has a vote and what was in the log
// before this turn, or ctx ends.
func (n *node) endHold(ctx context.Context) {
	for n.holds && ctx.Err() == nil {
		if n.holds = !n.member.Votes() || n.store.Load().Control().Batch < n.old.Load() || n.log.EndHold(ctx, n.Node) != nil; n.holds {
			wait(ctx, claimPause)
		}
	}
}

// letFirst lets the node claim first to which the queues are handed over, if they are.
func (n *node) letFirst(ctx context.Context, owner cell.Owner) cell.Owner {
	if to, _, err := n.log.HandedTo(ctx); err != nil || to == "" || to == n.Node {
		return owner
	}
	ctx, cancel := context.WithTimeout(ctx, handOverPause)
	defer cancel()
	if now, err := n.log.OwnerChanged(ctx, owner); err == nil {
		return now
	}
	return owner
}

// knows notes who owns, and has clients passed there.
func (n *node) knows(owner cell.Owner) {
	if known := n.owned.Swap(&owner); owner.Node != "" && *known != owner {
		n.owners.Add(1)
		n.logger.Info("queues are owned by", "owner", owner.Node)
	}
	to, _, _ := strings.Cut(owner.Addresses, " ")
	if owner.Node == n.Node { // of this term, which passes nobody on
		to = ""
	}
	n.owner.Set(to)
	n.server.Switched()
}

// leader is a daemon.Leader.
func (n *node) leader() (string, error) {
	o := n.owned.Load()
	if o.Node == "" || o.Node == n.Node || n.alone.Load() {
		return "", errors.New("no node owns the queues: without two of three nodes none can")
	}
	if n.owner.Silent(silentTime) {
		return "", fmt.Errorf("node %s owns the queues, and does not answer this one: look at the ports between them", o.Node)
	}
	return "node " + o.Node, nil
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// errReached ends a Follow.
var errReached = errors.New("the log's end was reached")

// own reads the log to its end, and serves until the term or ctx ends.
func (n *node) own(ctx context.Context, store *storage.Store, term *cell.Term, last uint64) (err error) {
	begun := time.Now()
	leading, stop := context.WithCancel(context.Background())
	giveBack := sync.OnceFunc(func() { n.giveBack(term) })
	var running sync.WaitGroup
	defer func() {
		stop()
		giveBack()
		n.await(&running)
	}()
	reading, end := context.WithCancel(ctx)
	running.Go(func() {
		<-term.Done()
		end()
	})
	err = readTo(reading, n.log, store.Control().Batch, last, n.take(reading, store))
	if end(); err != nil {
		return errors.Join(err, store.Close())
	}
	n.old.CompareAndSwap(math.MaxUint64, last) // the claim was faster than the look at the log
	clock := newClock(n.began(ctx, store))
	n.clock.Store(clock)
	defer n.clock.Store(nil)
	process := ctx
	ctx, handOver := context.WithCancelCause(context.WithoutCancel(ctx))
	defer handOver(nil)
	defer context.AfterFunc(process, func() {
		n.handOn(ctx)
		handOver(context.Cause(process))
	})()
	if err := store.Own(n.paced(ctx, term.Append, term.Done()), clock.now); err != nil {
		return errors.Join(err, store.Close())
	}
	n.term.Store(term)
	defer n.term.Store(nil)
	n.knows(cell.Owner{Node: n.Node, Addresses: n.addresses()})
	n.role.Store(owning)
	n.logger.Info("this node owns the queues", "batch", last, "epoch", store.Epoch(), "took", time.Since(begun).Round(time.Millisecond))
	running.Go(term.Trim)
	n.room.Store(&room{})
	running.Go(func() { n.lookAtRoom(leading) })
	running.Go(func() { n.lead(leading, store) })
	running.Go(func() { n.endHold(leading) })
	n.progress.took.Store(0) // from here on recovery and the loop must get on
	running.Go(func() {
		if to, err := term.HandedOver(leading); err == nil {
			handOver(fmt.Errorf("%w to node %s", daemon.ErrHandOver, to))
		}
	})
	err = n.server.Serve(ctx, store, daemon.Term{
		Clock: clock.now, Held: term.Held, Listen: peer.Duplicate, Room: n.allows, Pulse: probePause, Over: giveBack,
	})
	return cmp.Or(err, context.Cause(ctx))
}

// readTo takes what a log has behind a batch up to the last one.
func readTo(ctx context.Context, log *cell.Log, after, last uint64, take func(batch uint64, content []byte) error) error {
	if after >= last {
		return nil
	}
	err := log.Follow(ctx, after, func(batch uint64, content []byte) error {
		if err := take(batch, content); err != nil {
			return err
		}
		if batch >= last {
			return errReached
		}
		return nil
	})
	if errors.Is(err, errReached) {
		return nil
	}
	return err
}

// giveBack ends a term, so that another node can claim at once.
func (n *node) giveBack(term *cell.Term) {
	done := make(chan error, 1)
	go func() { done <- term.End(n.member.Client().Ctx()) }() // it ends with the member
	select {
	case err := <-done:
		if err != nil {
			n.logger.Warn("the claim was not given back", "error", err)
		}
	case <-time.After(endTime): // it is tried on
		n.logger.Warn("the claim was not given back", "error", "etcd has not answered in time", "waited", endTime)
	}
}

// lead has those that joined become voters, until ctx ends. It tells what keeps one from it.
func (n *node) lead(ctx context.Context, store *storage.Store) {
	var r reason
	for ctx.Err() == nil {
		had := store.Control().Batch
		wait(ctx, leadPause)
		s, err := n.log.Status(ctx)
		if err != nil {
			continue
		}
		for _, m := range s.Members {
			if !m.Learner {
				continue
			}
			if err := n.promote(ctx, m, had); err == nil {
				n.logger.Info("node joined", "node", m.Name)
			} else if r.lasts(m.Name+kind(err), time.Now()) {
				n.logger.Warn("node has no vote yet", "node", m.Name, "reason", err)
			}
		}
	}
}

// reason is why a node has no vote, of which there is one at a time in a cell.
type reason struct {
	is    string
	since time.Time // zero: it was told
}

// kind is the text of an error, without the port that a connection had at this end.
func kind(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return err.Error()
}

// lasts says once of a reason that it has been the only one for voteTime.
func (r *reason) lasts(is string, now time.Time) bool {
	if r.is != is {
		r.is, r.since = is, now
	}
	if r.since.IsZero() || now.Sub(r.since) < voteTime {
		return false
	}
	r.since = time.Time{}
	return true
}

// promote makes a node a voter that has what the log no longer has, and all that the owner had. Its
// hold may have ended, so the log is not cut meanwhile.
func (n *node) promote(ctx context.Context, m cell.Peer, had uint64) error {
	own, err := peer.NextPort(m.Address) // it may be another one than in this node's list
	if err != nil {
		return err
	}
	var a peer.Node
	is := func() (err error) {
		a, err = n.ask(ctx, own)
		switch {
		case err != nil:
			return err
		case a.Cell != n.member.Cell():
			return fmt.Errorf("it is of cell %q", a.Cell)
		case a.Role != learner:
			return fmt.Errorf("it is %s: expected a %s", a.Role, learner)
		case a.Batch < had:
			return errors.New("it has not taken all of the log: its own log may say why")
		}
		return nil
	}
	if err := is(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, max(promoteTime, 8*n.Election))
	defer cancel()
	cut, free, err := n.log.HoldCut(ctx, m.Name)
	if err != nil {
		return err
	}
	defer free()
	if err := is(); err != nil { // it may have lost its folder while another hold was waited for
		return err
	}
	if a.Floor < cut {
		return errors.New("its tables lack what the log no longer has")
	}
	return n.member.Promote(ctx, m.Name)
}
