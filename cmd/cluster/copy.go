package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-queue/holdfast/storage"
)

// copy replaces the data folder by that of another node: of one that follows, if there is one.
func (n *node) copy(ctx context.Context) error {
	if err := n.log.Forget(ctx); err != nil {
		return err
	}
	to := copyFolder(n.folder)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	owner := n.owned.Load().Node
	var all []string
	for name := range n.others() {
		if name == owner {
			all = append(all, name)
		} else {
			all = append([]string{name}, all...)
		}
	}
	var errs []error
	for _, name := range all {
		n.logger.Info("copying the folder of another node", "node", name)
		_, err := n.client.Fetch(ctx, n.others()[name], to)
		if err == nil {
			return finishCopy(n.folder)
		}
		errs = append(errs, fmt.Errorf("node %s: %w", name, err))
	}
	return errors.Join(errs...)
}

// finishCopy puts a whole copy in the place of the data folder, also after a kill. One that is not
// whole goes.
func finishCopy(folder string) error { return storage.Replace(folder, copyFolder(folder)) }

// copyFolder is where a copy comes to.
func copyFolder(folder string) string { return filepath.Join(folder, storage.CellName, "copy") }
