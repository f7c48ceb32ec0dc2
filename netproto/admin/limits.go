package admin

import "time"

const (
	// DefaultMaxConns is far more than operators and their monitors need; it keeps what belongs to
	// the queues' clients, descriptors above all, out of their reach.
	DefaultMaxConns = 64
	// DefaultStallTimeout ends a backup whose client takes less than a piece of 64 KiB in this long.
	DefaultStallTimeout = 30 * time.Second

	headerTimeout = 10 * time.Second // for a request, from its first byte or the connection's beginning
	idleTimeout   = 60 * time.Second // between two requests of a connection
	shutdownWait  = time.Second      // for requests under way, which take microseconds, backups apart

	maxHeader = 256 << 10 // has room for the longest queue name, each of its bytes in three
	piece     = 64 << 10  // of a backup, written in one go
)
