package daemon

import (
	"fmt"
	"syscall"

	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// minStoreDescriptors is the fewest descriptors that are kept for the store; otherwise it is half
// of all. The store needs two for each table while tables are replaced. Badger v4.9.6 ends the
// process where it finds none left, so connections must never take them.
const minStoreDescriptors = 512

// limitConns lowers the limit of connections to the descriptors that the store leaves.
func (c *Config) limitConns(all listeners) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	if c.MaxConns <= 0 {
		c.MaxConns = netproto.DefaultMaxConns
	}
	queues := uint64(all.queues())
	kept := max(minStoreDescriptors, l.Cur/2)
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
	log := c.Logger.Info
	if most < 1000 { // with more, most servers get along
		log = c.Logger.Warn
	}
	log("fewer connections than configured: the limit of open files (ulimit -n) is low",
		"connections_per_protocol", most, "configured", c.MaxConns, "open_files", l.Cur)
	c.MaxConns = most
	return nil
}
