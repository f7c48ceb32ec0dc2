package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

// known is what a node notes of its cell in its folder. A node that starts from an old image of its
// disk has forgotten what it acknowledged. The others tell it, before its etcd may vote.
type known struct {
	Cell   string            `json:"cell"`   // its id
	Node   string            `json:"node"`   // whose folder this is; "" if it was noted by an earlier version
	Floors map[string]uint64 `json:"floors"` // of all nodes, by name
	// Differs says that etcd had other keys here than at the other nodes, who go on without this one.
	Differs bool `json:"differs,omitempty"`
}

const knownName = "known"

// forgetTime is within which the others no longer know of tables that a node had before it joined
// anew: it may have been killed since, and know no more of that itself.
const forgetTime = 3 * tellPause

// recall reads what was noted. The folder of another node is refused.
func (n *node) recall() error {
	k := &known{}
	b, err := os.ReadFile(filepath.Join(n.folder, storage.CellName, knownName))
	if err == nil {
		err = json.Unmarshal(b, k)
	}
	if n.known.Store(k); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && k.Node != "" && k.Node != n.Node {
		err = fmt.Errorf("%s is the folder of node %s: expected that of node %s, or none", n.folder, k.Node, n.Node)
	}
	if err == nil && k.Differs {
		err = cell.ErrDiffers
	}
	return err
}

// noteDiffers notes that the turns of the node have ended since its etcd differs, and returns why
// they have ended.
func (n *node) noteDiffers(ended error) error {
	if !errors.Is(ended, cell.ErrDiffers) {
		return ended
	}
	k := *n.known.Load()
	k.Differs = true
	return errors.Join(ended, k.write(n.folder))
}

// note notes what has changed.
func (n *node) note(floors map[string]uint64) error {
	last, now := n.known.Load(), &known{Cell: n.member.Cell(), Node: n.Node, Floors: floors}
	if now.Cell == last.Cell && now.Node == last.Node && maps.Equal(now.Floors, last.Floors) {
		return nil
	}
	if err := now.write(n.folder); err != nil {
		return err
	}
	n.known.Store(now)
	return nil
}

func (k *known) write(folder string) error {
	b, _ := json.Marshal(k) // it always works
	return storage.WriteFile(filepath.Join(folder, storage.CellName), knownName, b)
}

// compare holds the folder against what the other nodes know. One that knows of others waits for
// one of them: without them it could do nothing. One whose --nodes have no other is alone for ever.
func (n *node) compare(ctx context.Context) error {
	if err := finishCopy(n.folder); err != nil {
		return err
	}
	own := n.known.Load()
	old := make(map[string]error) // why the folder is old, by the name of the node that knows
	var since time.Time           // when the first of them said so
	for told := false; ctx.Err() == nil; wait(ctx, turnPause) {
		answered := len(own.Floors) < 2 || len(n.others()) == 0
		for name, address := range n.others() {
			a, err := n.ask(ctx, address)
			if err != nil || a.Cell == "" {
				continue
			}
			if own.Cell != "" && a.Cell != own.Cell {
				return fmt.Errorf("node %s is of cell %s, but this folder of cell %s: one of them is from elsewhere", name, a.Cell, own.Cell)
			}
			if err := n.isOld(a.Floors); err == nil {
				delete(old, name)
			} else if old[name] = fmt.Errorf("node %s: %w", name, err); since.IsZero() {
				since = time.Now()
			}
			answered = true
		}
		for _, err := range old {
			if time.Since(since) > forgetTime {
				return err
			}
		}
		if answered && len(old) == 0 {
			return nil
		}
		if !answered && !told {
			n.logger.Info("the node waits for another one, which knows whether its folder is old")
			told = true
		}
	}
	return nil
}

// isOld returns an error if the tables of the folder, before they are opened, have less than others
// know.
func (n *node) isOld(floors map[string]uint64) error {
	floor, err := storage.Floor(n.folder)
	if err == nil && floor < floors[n.Node] {
		err = fmt.Errorf("%w (it has batch %d, and had batch %d)", cell.ErrOld, floor, floors[n.Node])
	}
	return err
}
