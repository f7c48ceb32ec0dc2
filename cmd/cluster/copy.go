package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/storage"
)

// copy replaces the data folder, which is of no use, by that of another node. It tries until ctx
// ends.
func (n *node) copy(ctx context.Context) {
	for err := n.copyOnce(ctx, 0); err != nil && ctx.Err() == nil; err = n.copyOnce(ctx, 0) {
		n.logger.Warn("no copy of another node's folder", "error", err)
		wait(ctx, claimPause)
	}
}

// copyOnce asks each node that has batch least for a copy. The log is held from the last round on,
// until endHold: it may have no room for what comes while all is copied.
func (n *node) copyOnce(ctx context.Context, least uint64) error {
	if err := finishCopy(n.folder); err != nil { // of a copy that is whole already
		return err
	}
	sources := n.sources(ctx, n.member.Cell(), least)
	if least > 0 && len(sources) == 0 {
		return fmt.Errorf("no other node that has batch %d gives one: start all, and where that one is lost for ever see CLUSTER.md, Lose two", least)
	}
	if err := cmp.Or(n.log.Forget(ctx), n.log.EndHold(ctx, n.Node)); err != nil {
		return err
	}
	errs := []error{errors.New("no other node that has the queues gives one")}
	for _, from := range sources {
		n.logger.Info("copying the folder of another node", "node", from.Name)
		address := n.others()[from.Name]
		err := n.client.Fetch(ctx, address, copyFolder(n.folder), func() error { return n.hold(ctx, address) })
		if err == nil {
			err = finishCopy(n.folder)
			n.checked = err == nil // who checks it again holds the log for that long
			return err
		}
		errs = append(errs, fmt.Errorf("node %s: %w", from.Name, err))
		n.holds = n.log.EndHold(ctx, n.Node) != nil // the log is not kept for a node that cannot copy
	}
	return errors.Join(errs...)
}

// holdTries is how often a node tries to hold the log, so that one lost answer costs no copy.
const holdTries = 5

// hold holds the log behind what another node has now.
func (n *node) hold(ctx context.Context, address string) (err error) {
	for range holdTries {
		var a peer.Node
		if a, err = n.ask(ctx, address); err == nil {
			n.holds = true
			err = n.log.Hold(ctx, a.Batch)
		}
		if err == nil {
			return nil
		}
		wait(ctx, claimPause)
	}
	return err
}

// sources are the nodes of the cell that have a folder to copy, with batch least, the best first:
// one that follows, whose work is less than the owner's, with most in its tables.
func (n *node) sources(ctx context.Context, cell string, least uint64) (all []peer.Node) {
	for _, address := range n.others() {
		if a, err := n.ask(ctx, address); err == nil && a.Cell == cell && a.Batch >= least && slices.Contains([]string{learner, follower, owning}, a.Role) {
			all = append(all, a)
		}
	}
	last := map[string]int{owning: 1}
	slices.SortFunc(all, func(a, b peer.Node) int {
		return cmp.Or(cmp.Compare(last[a.Role], last[b.Role]), cmp.Compare(b.Floor, a.Floor))
	})
	return all
}

// finishCopy puts a whole copy in the place of the data folder, also after a kill. One that is not
// whole goes.
func finishCopy(folder string) error { return storage.Replace(folder, copyFolder(folder)) }

// copyFolder is where a copy comes to.
func copyFolder(folder string) string { return filepath.Join(folder, storage.CellName, "copy") }
