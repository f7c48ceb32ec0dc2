package netproto

import "time"

// Defaults of the limits that a Server enforces on every connection, whatever its protocol.
const (
	// DefaultMaxConns is as many connections as Redis takes by default; each idle one costs some
	// 10 KiB here.
	DefaultMaxConns = 10_000
	// DefaultMaxConnsPerAddress is the most connections from one address that is not loopback,
	// so that one host cannot take all places.
	DefaultMaxConnsPerAddress = 1_000
	// DefaultWriteTimeout ends a connection whose peer takes less than 16 KiB in this long while more
	// waits for it.
	DefaultWriteTimeout = 30 * time.Second
	// DefaultFrameTimeout ends a connection that leaves a frame unfinished for this long. Between
	// frames a connection may be idle for ever, as subscribers are.
	DefaultFrameTimeout = 30 * time.Second

	// DefaultMaxBuffers is for the unfinished requests of all connections: 64 of the longest.
	DefaultMaxBuffers = 256 << 20

	keepAlive = 30 * time.Second // of TCP: a peer that vanished is noticed after about two minutes

	minReadBuffer = 4 << 10  // of an idle connection
	maxReadBuffer = 64 << 10 // of a busy one; a longer frame gets what it needs
	maxAcceptWait = time.Second
)
