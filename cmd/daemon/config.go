// Package daemon is the server as a whole: it opens a data folder, recovers it, listens, and
// drains at the end. The command line, and the harness that kills servers, run the same one.
package daemon

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/storage"
)

// Config says how a server runs. Zero values mean the defaults.
type Config struct {
	Data    string           // data folder, made if it does not exist
	Pinpriq string           // HOST:PORT of the pinpriq listener; port 0 picks one
	Sync    storage.SyncMode // when a batch is forced to the disk
	Cache   int64            // bytes of payloads kept in memory

	MaxConns   int           // connections at a time, of one protocol
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

// checkAddress refuses to serve strangers: there is neither encryption nor authentication, so an
// address that other machines reach must be asked for.
func (c *Config) checkAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address %q: expected HOST:PORT, such as 127.0.0.1:7070: %w", address, err)
	}
	if c.Insecure || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("address %q can be reached from other machines, and the protocol has neither encryption nor passwords: "+
		"use a loopback address such as 127.0.0.1, or --insecure on a network you trust", address)
}

func (c *Config) server(p netproto.Protocol) netproto.Config {
	return netproto.Config{
		Protocol:  p,
		Logger:    c.Logger,
		MaxConns:  c.MaxConns,
		MaxUnsent: broker.MaxUnsent,
	}
}
