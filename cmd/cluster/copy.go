package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/storage"
)

// copy replaces the data folder by that of another node. The log is not cut meanwhile behind what
// the copy has, and not before endHold.
func (n *node) copy(ctx context.Context) error {
	if err := finishCopy(n.folder); err != nil { // of a copy that is whole already
		return err
	}
	if err := n.log.Forget(ctx); err != nil {
		return err
	}
	to, errs := copyFolder(n.folder), []error{errors.New("no other node that has the queues gives one")}
	for _, from := range n.sources(ctx, n.member.Cell()) {
		n.logger.Info("copying the folder of another node", "node", from.Name)
		n.holds = true
		err := cmp.Or(os.RemoveAll(to), n.log.Hold(ctx, from.Batch))
		if err == nil {
			err = n.client.Fetch(ctx, n.others()[from.Name], to)
		}
		if err == nil {
			return finishCopy(n.folder)
		}
		errs = append(errs, fmt.Errorf("node %s: %w", from.Name, err))
	}
	n.holds = n.log.EndHold(ctx) != nil // the log is not kept for a node that cannot copy
	return errors.Join(errs...)
}

// sources are the nodes of the cell that have a folder to copy, the best first: one that follows,
// whose work is less than the owner's, with most in its tables.
func (n *node) sources(ctx context.Context, cell string) (all []peer.Node) {
	for _, address := range n.others() {
		if a, err := n.ask(ctx, address); err == nil && a.Cell == cell && slices.Contains([]string{learner, follower, owning}, a.Role) {
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
