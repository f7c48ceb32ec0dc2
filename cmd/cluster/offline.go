package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

// Offline is what the folder of a node has, which does not run.
type Offline struct {
	Cell   string `json:"id"`     // of the cell
	Others int    `json:"others"` // members that the cell has besides
	Tables uint64 `json:"tables"` // the batch up to which the tables have everything
	Cut    uint64 `json:"cut"`    // the batch up to which its log was cut: tables that end before have only what is in them
	Log    uint64 `json:"log"`    // the last batch of its log
	damage error  // of the log's keys
}

// ReadOffline reads what the folder of a node has. With an error that wraps cell.ErrDamaged it
// returns what can be read still.
func ReadOffline(ctx context.Context, folder string, logger *slog.Logger) (o Offline, err error) {
	err = alone(ctx, folder, logger, func(found Offline, _ *cell.Log) error {
		o = found
		return found.damage
	})
	return o, err
}

// aloneName is where a copy of a node's etcd is read.
const aloneName = "alone"

// alone puts a whole copy of another node's folder in the place of this one, reads that, and has
// something done with the log of its etcd. It knows nothing of a log whose end or cut is damaged.
func alone(ctx context.Context, folder string, logger *slog.Logger, do func(o Offline, log *cell.Log) error) error {
	at := filepath.Join(folder, storage.CellName)
	return cell.Alone(ctx, filepath.Join(at, storage.MemberName), filepath.Join(at, aloneName), logger, func(m *cell.Member, others int) error {
		if !storage.IsEmpty(copyFolder(folder)) {
			if err := finishCopy(folder); err != nil {
				return err
			}
		}
		tables, err := storage.Floor(folder)
		if err != nil {
			return err
		}
		log := cell.NewLog(cell.Config{Client: m.Client(), Node: "alone", Logger: logger})
		s, err := log.Status(ctx)
		switch damaged := errors.Is(err, cell.ErrDamaged); {
		case err != nil && !damaged:
			return err
		case err == nil && s.Headless:
			err = fmt.Errorf("%w: the key is missing that tells its last batch", cell.ErrDamaged)
		case s.Head > 0:
			err = nil // the log can be read, and nobody asks for what cannot
		}
		return do(Offline{m.Cell(), others, tables, s.Cut, s.Head, err}, log)
	})
}

// Leave makes the folder of the last node of a cell that of a single server.
func Leave(ctx context.Context, folder string, logger *slog.Logger) error {
	err := leave(ctx, folder, false, logger, func(o Offline) error {
		if o.Others > 0 {
			return fmt.Errorf("the cell has %d other nodes: remove them first, or delete this folder if it is this node that goes", o.Others)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(folder, storage.CellName))
}

// leave has a folder be of no cell, but for what is in the folder CellName still.
func leave(ctx context.Context, folder string, acceptLoss bool, logger *slog.Logger, check func(o Offline) error) error {
	at := filepath.Join(folder, storage.CellName)
	_, gone := os.Stat(filepath.Join(at, goneName))
	_, there := os.Stat(filepath.Join(at, storage.MemberName))
	if gone != nil || there == nil { // else an earlier try ended behind this
		err := alone(ctx, folder, logger, func(o Offline, log *cell.Log) error {
			if err := check(o); err != nil {
				return err
			}
			if o.damage != nil && !acceptLoss {
				return o.damage
			}
			options := storage.Options{Logger: logger, Release: log.Release, AcceptLoss: acceptLoss, Cut: o.Cut}
			if o.damage != nil || o.Log < o.Cut || o.Log == 0 { // nothing of the log can be read
				options.Cut = math.MaxUint64
			}
			return settle(ctx, folder, options, o, log)
		})
		if err != nil || !acceptLoss {
			return err
		}
	} else if err := finishCopy(folder); err != nil {
		return err
	}
	_, err := begin(folder, storage.Options{Logger: logger, AcceptLoss: acceptLoss}) // a node accepts no loss later
	return err
}

// goneName is where a node's etcd is whose folder is of no cell any more.
const goneName = "gone"

// settle takes the rest of the log into the tables, and has the folder be of no cell from one
// moment to the next. Where loss is accepted, a log that begins later is none, and one with a hole
// ends there.
func settle(ctx context.Context, folder string, options storage.Options, o Offline, log *cell.Log) error {
	store, err := storage.Open(folder, options)
	if err != nil {
		return err
	}
	for _, found := range store.Accepted() {
		options.Logger.Warn("finding", "what", found)
	}
	had := store.Control().Batch
	if err = readTo(ctx, log, had, o.Log, store.Take); o.Log < max(had, o.Cut) {
		err = fmt.Errorf("%w: it ends at batch %d, was cut up to %d, and the tables have %d", cell.ErrDamaged, o.Log, o.Cut, had)
	} else if err == nil {
		err = o.damage
	}
	if options.AcceptLoss && (errors.Is(err, cell.ErrCut) || errors.Is(err, cell.ErrDamaged) || errors.Is(err, storage.ErrDamaged) || errors.Is(err, storage.ErrLoss)) {
		options.Logger.Warn("what came behind this node's batches is not in the new cell", "has", store.Control().Batch, "log", o.Log, "error", err)
		err = nil
	}
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	at := filepath.Join(folder, storage.CellName)
	return cmp.Or(os.RemoveAll(filepath.Join(at, goneName)), os.Rename(filepath.Join(at, storage.MemberName), filepath.Join(at, goneName)))
}

// FoundAnew founds a new cell on what the folder of a node has, whose other nodes are lost for
// ever. What they alone had is lost. It refuses while one of them still answers, since that one may
// own, and where one is not named, so that it cannot be asked.
func FoundAnew(ctx context.Context, folder string, c Config, logger *slog.Logger) error {
	all := c.Nodes
	c.Nodes = map[string]string{c.Node: all[c.Node]}
	if err := cmp.Or(c.Check(), (&node{Config: c, folder: folder}).recall()); err != nil { // before the folder is none of its cell
		return err
	}
	for name, address := range all {
		if name == c.Node {
			continue
		}
		own, err := peer.NextPort(address)
		if err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		if conn, err := (&net.Dialer{Timeout: askTime}).DialContext(ctx, "tcp", own); err == nil {
			_ = conn.Close()
			return fmt.Errorf("node %s answers at %s: stop it for ever first, or have this node join it with an empty folder", name, own)
		}
	}
	err := leave(ctx, folder, true, logger, func(o Offline) error {
		if o.Others >= len(all) {
			return fmt.Errorf("the cell has %d other nodes, of which only %d are named: name all, so that each is asked", o.Others, len(all)-1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return Found(folder, c, logger)
}
