package netproto

import "time"

// Defaults of the limits that a Server enforces on every connection, whatever its protocol.
const (
	// DefaultMaxConns is as many connections as Redis takes by default; each idle one costs some
	// 2 KiB here.
	DefaultMaxConns = 10_000
	// DefaultMaxConnsPerAddress is the most connections from one host (access.Host) that is not
	// loopback, so that it cannot take all places.
	DefaultMaxConnsPerAddress = 1_000
	// DefaultWriteTimeout ends a connection whose peer takes less than 16 KiB in this long while more
	// waits for it.
	DefaultWriteTimeout = 30 * time.Second
	// DefaultFrameTimeout ends a connection that leaves a frame unfinished for this long, or of a long
	// one the next frameBytes. Between frames a connection may be idle for ever, as subscribers are.
	DefaultFrameTimeout = 30 * time.Second

	// DefaultMaxBuffers is for what all connections hold: 64 of the longest requests.
	DefaultMaxBuffers = 256 << 20
	// leastBuffers are left to all connections where the memory is short.
	leastBuffers = 16 << 20

	// ReservedParts is into how many parts the room for buffers is cut, of which requests that are
	// longer than LongRequest take one less: the rest is for all others. A server has room for as many
	// of the longest request.
	ReservedParts = 4
	LongRequest   = 4 << 20
	frameBytes    = 1 << 20
	// besidePayloads is for the names, keys and tags of requests that take the reserved parts.
	besidePayloads = 256 << 10

	// MaxServe is how many bytes of requests a session carries out before others have their turn, and
	// MaxReplies after how many of replies it stops early: some are far longer than their request.
	MaxServe   = 16 << 10
	MaxReplies = 64 << 10

	keepAlive = 30 * time.Second // of TCP: a peer that vanished is noticed after about two minutes

	minReadBuffer = 512      // of a connection that has sent a part of a request
	maxReadBuffer = 64 << 10 // that is read at a time; a longer frame gets what it needs
	maxAcceptWait = time.Second

	maxCopied  = 4 << 10   // of a message for several clients; they share a longer one
	keepOut    = 16 << 10  // the largest buffer for replies that a connection keeps
	leastTaken = 16 << 10  // bytes that a peer must take in WriteTimeout
	maxPiece   = 256 << 10 // that leaves a connection at a time

	maxRun     = 2 * time.Millisecond // of requests of one connection, before others have their turn
	maxUntimed = 32                   // quick requests behind which the clock is looked at

	maxTurnReplies = 16 << 20               // bytes of replies that end a turn
	maxTurn        = 20 * time.Millisecond  // behind which no further connection is served in a turn
	longTurn       = 500 * time.Microsecond // of a connection, as a mean: it stands apart, see fair
	meanTurns      = 16                     // over which that mean goes, about
	standsAfter    = 250 * time.Millisecond // that a turn takes before the steady clock stands still for it
	runsFor        = 8                      // times as long it runs then, at least

	turnTime    = time.Second            // that a deadline leaves at least for a turn, see timeline
	hearPause   = 100 * time.Millisecond // of a Hearer that wants to be called soon
	stallTime   = time.Second            // in which a peer that reads takes that much
	lingerTime  = time.Second            // how long an end waits for the peer's
	lingerBytes = 64 << 20               // how much it drops meanwhile

	handshakeTime     = 10 * time.Second // of TLS
	fairHandshakeTime = time.Second      // the same where others wait
	maxHandshakes     = 256              // at a time, of each server

	keepSealed = 4 << 10 // the largest buffer for encrypted replies that a connection keeps

	drainTime = 50 * time.Millisecond // after that nothing more has arrived, at a drain

	fullRetry    = 200 * time.Millisecond // pause before a batch that found the disk full is tried again
	longestSleep = time.Hour              // of the loop, however far the next deadline is
)
