package daemon

import (
	"fmt"
	"math"
	"syscall"

	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// minStoreDescriptors is the fewest descriptors that are kept for the store; otherwise it is half
// of all. The store needs two for each table while tables are replaced. Badger v4.9.6 ends the
// process where it finds none left, so connections must never take them.
const minStoreDescriptors = 512

// OperatorConns is how many connections the operator's port takes.
const OperatorConns = admin.DefaultMaxConns

// kept returns how many of the files that may be open are not for the clients of the queues.
func kept(files uint64, operator bool) uint64 {
	n := max(minStoreDescriptors, files/2)
	if operator {
		n += OperatorConns
	}
	return n
}

// ConnsWithin returns how many connections each of the protocols may have, where the process may
// open files in that number. Below 1 the server does not start.
func ConnsWithin(files uint64, protocols int, operator bool) int {
	files = min(files, math.MaxInt32) // which is as good as any
	return (int(files) - int(kept(files, operator))) / protocols
}

// OpenFiles is how many files this process may have open at a time.
func OpenFiles() (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return l.Cur, nil
}

// limitConns lowers the limit of connections to the descriptors that the store leaves.
func (c *Config) limitConns(all listeners) error {
	files, err := OpenFiles()
	if err != nil {
		return err
	}
	if c.MaxConns <= 0 {
		c.MaxConns = netproto.DefaultMaxConns
	}
	queues, operator := len(all)-len(all.operators()), len(all.operators()) > 0
	most := ConnsWithin(files, queues, operator)
	if most >= c.MaxConns {
		return nil
	}
	if most < 1 {
		return fmt.Errorf("the process may open %d files, expected %d or more: raise the limit (ulimit -n)", files, kept(files, operator)+uint64(queues))
	}
	log := c.Logger.Info
	if most < 1000 { // with more, most servers get along
		log = c.Logger.Warn
	}
	log("fewer connections than configured: the limit of open files (ulimit -n) is low",
		"connections_per_protocol", most, "configured", c.MaxConns, "open_files", files)
	c.MaxConns = most
	return nil
}
