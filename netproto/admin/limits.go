package admin

import "time"

const (
	// DefaultMaxConns is far more than operators and their monitors need; it keeps what belongs to
	// the queues' clients, descriptors above all, out of their reach.
	DefaultMaxConns = 64
	// DefaultStallTimeout ends a backup whose client takes less than a piece of 64 KiB in this long.
	// The client's rate is averaged over the same time.
	DefaultStallTimeout = 30 * time.Second
	// DefaultMinRate ends a backup whose client takes fewer bytes a second: it would hold the one slot
	// for hours, and on the disk what was popped since. Half a megabit a second is less than any line
	// that an operator moves a backup over, and a gigabyte still has more than four hours.
	DefaultMinRate = 64 << 10

	headerTimeout = 10 * time.Second // for a request, from its first byte or the connection's beginning
	idleTimeout   = 60 * time.Second // between two requests of a connection
	shutdownWait  = time.Second      // for requests under way, which take microseconds, backups apart

	maxHeader = 256 << 10 // has room for the longest queue name, each of its bytes in three
	piece     = 64 << 10  // of a backup, written in one go
)
