package daemon

import (
	"fmt"
	"syscall"

	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// storeDescriptors are kept for the store: logs, tables and what a compaction writes beside them.
// A compaction that finds none left could lose a table, so connections must never take them.
const storeDescriptors = 512

// limitConns lowers the limit of connections to what the process may open beside the store.
func (c *Config) limitConns(all doors) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	if c.MaxConns <= 0 {
		c.MaxConns = netproto.DefaultMaxConns
	}
	queues := uint64(all.queues())
	kept := uint64(storeDescriptors)
	if uint64(len(all)) > queues {
		kept += admin.DefaultMaxConns
	}
	if l.Cur >= kept+queues*uint64(c.MaxConns) {
		return nil
	}
	if l.Cur < kept+queues {
		return fmt.Errorf("the process may open %d files, expected %d or more: raise the limit (ulimit -n)", l.Cur, kept+queues)
	}
	most := int((l.Cur - kept) / queues)
	c.Logger.Warn("fewer connections than wished: the limit of open files is low",
		"connections_per_protocol", most, "wished", c.MaxConns, "open_files", l.Cur)
	c.MaxConns = most
	return nil
}
