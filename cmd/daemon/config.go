// Package daemon is the server as a whole: it opens a data folder, recovers it, listens, and
// drains at the end. The command line, and the harness that kills servers, run the same one.
package daemon

import (
	"log/slog"
	"net"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
)

// Config says how a server runs. Zero values mean the defaults.
type Config struct {
	Data  string           // data folder, made if it does not exist
	Sync  storage.SyncMode // when a batch is forced to the disk
	Cache int64            // bytes of payloads kept in memory

	// Addresses to listen on, HOST:PORT with port 0 for any free one; empty or Off is none. At least
	// one protocol must have an address.
	Pinpriq string
	// Barbershop serves the board BarbershopQueue.
	Barbershop string
	Admin      string // of the HTTP server for the operator, which hands out backups

	BarbershopQueue string // name of the queue that is the board, at most 65,535 bytes; any, and the empty name is one
	Version         string // of the program, one word, for clients that ask; unknown if empty

	MaxConns   int           // connections at a time, of each protocol
	Drain      time.Duration // how long Run waits for connections to finish; DefaultDrain if 0
	Insecure   bool          // allow addresses that are not loopback, although nothing is encrypted or authenticated
	AcceptLoss bool          // start although the folder has lost acknowledged packets

	Logger *slog.Logger

	// WrapStore, if not nil, stands between broker and storage: the seam for planting faults.
	WrapStore func(Store) Store
	// Listening, if not nil, is called with the protocol and address of each listener.
	Listening func(protocol string, addr net.Addr)
}

// DefaultDrain is as long as most supervisors wait after SIGTERM before they kill, less a margin.
const DefaultDrain = 8 * time.Second

// Store is what the daemon needs of the storage: what recovery reads and what the broker uses.
type Store interface {
	broker.Store
	recoverySource
	Close() error
}
