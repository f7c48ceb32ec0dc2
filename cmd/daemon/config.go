// Package daemon is the whole server: it listens, opens and recovers a data folder, serves, and
// drains at the end. The command line and the harness that kills servers both run it. The map:
//
//	config.go        the settings
//	daemon.go        the run
//	server.go        Server: what is there before packets are served, and serves them
//	loopstore.go     the store as the loop sees it: notes when that waits for the disk
//	reload.go        what can change meanwhile
//	listeners.go     the addresses, and what is served there
//	health.go        how the run goes; notify.go: tells systemd
//	certificates.go  what TLS needs of files that may change
//	backup.go        what the operator copies
//	metrics/         what Prometheus sees; figures.go: what the page shows of the server
//	events.go        what operators are told, in the log
//	descriptors.go   files that are kept for the store
//	gc.go, memory.go   small memory: of a server, of an offline command
//	watermark.go       when the memory has pushes refused
//	brake.go           what clients can make the server log
package daemon

import (
	"cmp"
	"log/slog"
	"net"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/cmd/daemon/metrics"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/admin/page"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// Config says how a server runs. Zero values mean the defaults.
type Config struct {
	Data  string           // data folder, created if it does not exist
	Sync  storage.SyncMode // when a batch is forced to the disk
	Cache int64            // bytes of payloads kept in memory; 0: a share of it

	// Addresses to listen on, HOST:PORT with port 0 for any free one; empty or Off is none. One of the
	// first three must be given.
	Pinpriq    string
	Barbershop string
	Redis      string
	Admin      string // the operator's
	Sentinel   string // of clients of Redis Sentinel, who are told the address of Redis

	// Nodes is the cell that the server is a node of; nil: of none.
	Nodes admin.Nodes

	// Owner is the Redis address of the machine that serves the queues, "" for none; nil: this one's.
	Owner func() string
	// Node tells how the node of a cell is, for metrics; nil: a machine alone.
	Node            func() metrics.Node
	Cell            string   // the name by which clients of Redis Sentinel ask; DefaultCell if empty
	BarbershopQueue string   // the queue that is the board; any name of at most 65,535 bytes, the empty one too
	RedisPassword   string   // of the user default, who may do everything; none if empty
	RedisDisable    []string // Redis commands that are switched off
	Version         string   // of the program, one word, for clients that ask; unknown if empty

	Users     []access.User              // who may do what; without any and without RedisPassword everybody may do everything
	PlainUser string                     // the user of connections to pinpriq and barbershop that show no certificate; none if empty
	Queues    map[string]broker.Settings // of queues without settings of their own, by their names, or else the longest glob that matches
	TLS       TLSFiles                   // encryption on all listeners; none if zero
	Debug     bool                       // serve profiles to operators

	MetricsQueues []string // globs: queues with metrics of their own besides the largest

	MaxConns   int           // connections of each protocol at a time
	MaxBuffers int64         // bytes that the server keeps for all connections; a quarter of the memory if 0
	MaxMemory  int64         // bytes of memory that it may have: less than that of its control groups and of the machine, if not 0
	MaxPayload int64         // bytes of the longest payload that the Redis protocol takes; 1 MiB if 0
	Drain      time.Duration // how long Run waits for connections to finish; DefaultDrain if 0
	Insecure   bool          // allow addresses that other machines reach, without encryption or users
	Goroutines bool          // connections are read and written by goroutines, not by the loop
	AcceptLoss bool          // start although the folder has lost acknowledged packets

	Logger *slog.Logger

	// Reloads change the server while it runs; nil if nothing does.
	Reloads <-chan Reload
	// AskReload makes a reload come by Reloads, and returns what it changed; nil: no operator can ask.
	AskReload admin.Reload
	// Settings returns those in force, for operators to look at; nil: they see none.
	Settings func() []page.Setting

	// WrapStore, if not nil, puts a store between broker and storage, so that a test can plant faults.
	WrapStore func(Store) Store
	// Turned is called at the end of each turn of the loop, in its goroutine, by tests that measure
	// turns; nil: nobody.
	Turned func()
	// Listening, if not nil, is called with the protocol and address of each listener.
	Listening func(protocol string, addr net.Addr)
}

func (c *Config) setDefaults() {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Drain = cmp.Or(c.Drain, DefaultDrain)
	c.Version = cmp.Or(c.Version, "unknown")
	c.Cell = cmp.Or(c.Cell, DefaultCell)
	c.MaxPayload = cmp.Or(c.MaxPayload, broker.DefaultMaxPayload)
	memory, _ := memoryLimit(c.MaxMemory)
	c.Cache = cmp.Or(c.Cache, defaultCache(memory))
	c.MaxBuffers = cmp.Or(c.MaxBuffers, c.defaultBuffers())
}

// TLSFiles name PEM files. Cert and Key come together.
type TLSFiles struct {
	Cert     string // the server's certificate, with those between it and its CA
	Key      string // its private key
	ClientCA string // the CA whose client certificates are users; none are asked for if empty
}

// DefaultCell is what a cell is called that has no name.
const DefaultCell = "main"

// DefaultDrain is less than supervisors wait between SIGTERM and SIGKILL; ten seconds are common.
const DefaultDrain = 8 * time.Second

// Store is the part of the storage that the daemon needs: for recovery and for the broker.
type Store interface {
	broker.Disk
	recovery.Source
	Close() error
}
