package admin

import "time"

const (
	// DefaultMaxConns is far more than operators and their monitors need. It keeps most descriptors
	// for the clients of the queues.
	DefaultMaxConns = 64
	// DefaultStay is enough to answer what takes no time, and DefaultStayTLS with a handshake before,
	// on a busy machine. Beside 64 that stall, 3,200 or 640 others a second have their turn.
	DefaultStay    = 20 * time.Millisecond
	DefaultStayTLS = 100 * time.Millisecond
	// DefaultStallTimeout ends a backup whose client takes less than a piece of 64 KiB in this long.
	// The client's rate is averaged over the same time.
	DefaultStallTimeout = 30 * time.Second
	// DefaultMinRate ends a backup whose client takes fewer bytes a second. Such a client would keep
	// the one slot for hours, and what is popped meanwhile would stay on the disk. Half a megabit a
	// second is less than any network over which an operator takes backups.
	DefaultMinRate = 64 << 10

	headerTimeout = 10 * time.Second // for a request, from its first byte or the start of the connection
	bodyTimeout   = time.Second      // for the body of a request, which nobody needs
	idleTimeout   = 60 * time.Second // between two requests of a connection
	shutdownWait  = time.Second      // for requests under way: all but backups take microseconds

	maxHeader = 256 << 10 // fits the longest queue name, percent-encoded
	piece     = 64 << 10  // bytes of a backup that are written at a time

	// socketBuffer is how many bytes the kernel buffers at either end of a backup. With the megabytes
	// that it would choose, it moves nothing for half a minute when the client takes 100 KiB a second.
	socketBuffer = 512 << 10

	// maxScrapes is how many answers with metrics wait for clients that keep their connections: two
	// servers of Prometheus, and somebody who looks.
	maxScrapes = 3
)
