package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/cmd/daemon/metrics"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/admin/page"
	"github.com/holdfast-queue/holdfast/storage"
)

// Server has its addresses, and answers operators. What a store holds it serves in a term: one as
// long as the process, or several where machines take turns. Its methods belong to one goroutine.
type Server struct {
	c       Config
	all     listeners  // as they were bound
	ended   chan error // what each of their servers returned
	live    *live
	health  *health
	figures *metrics.Metrics
	web     *page.Page
	audit   *access.Audit
	log     *slog.Logger // of what clients cause
	store   atomic.Pointer[storage.Store]
	doors   atomic.Pointer[listeners] // of the term; nil in none
	lookout lookout
	memory  *watermark
	turns   metrics.Turns
	drained context.Context // ends when nobody waits any longer; nil before the drain
	closers []func()        // what End does, the last first
}

// Begin binds the addresses and answers operators. End must follow, unless it fails.
func Begin(ctx context.Context, c Config) (_ *Server, err error) {
	c.setDefaults()
	s := &Server{c: c, health: newHealth(), log: Braked(c.Logger)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.all, err = c.listeners(); err != nil {
		return nil, err
	}
	if s.live, err = c.live(); err != nil {
		return nil, err
	}
	if err := s.c.limitConns(s.all); err != nil {
		return nil, err
	}
	s.all.encrypt(s.live.certs.config())
	background, stop := context.WithCancel(context.Background())
	s.closers = append(s.closers, stop, TuneGC()) // now: a start makes as much garbage as packets
	go s.live.certs.Watch(background)             // ends with End
	s.figures, err = metrics.New(metrics.Config{Version: c.Version, GoVersion: runtime.Version(), Queues: c.MetricsQueues, Ready: s.health.Ready, Node: c.Node})
	if err != nil {
		return nil, err
	}
	// The addresses come first: recovery may take long, and a port that is taken should be known
	// before.
	if err := s.all.bind(); err != nil {
		return nil, err
	}
	s.memory = watchMemory(c.MaxMemory, s.health, c.Logger)
	s.audit = access.NewAudit(c.Logger)
	s.closers = append(s.closers, s.memory.stop, s.audit.Flush, s.health.supervise(ctx), s.all.close)
	s.ended = make(chan error, len(s.all)+1)
	s.web = page.New(page.Config{Users: s.live.users, Logger: s.log, Version: c.Version, Ready: s.health.Owns, Settings: c.Settings, Nodes: c.Nodes})
	s.all.serveOperator(&s.c, admin.Config{
		Health: s.health, Metrics: s.figures, Backup: backupOf(&s.store, c.Version), Users: s.live.users, Logger: s.log, Audit: s.audit,
		Reload: c.AskReload, Nodes: c.Nodes, AnyHost: c.Insecure || c.open() == "", Profiles: c.Debug, Page: s.web,
	}, s.ended)
	return s, s.serveSentinel()
}

// StorageOptions are those of the store that is served.
func (s *Server) StorageOptions() storage.Options {
	return storage.Options{Sync: s.c.Sync, AcceptLoss: s.c.AcceptLoss, MaxPayload: s.c.MaxPayload, MaxWindow: s.c.maxWindow(), Logger: s.c.Logger}
}

// Term says how a store is served where machines take turns. The zero value is a machine alone.
type Term struct {
	Clock func() int64 // Unix milliseconds; time.Now if nil
	Held  func() bool  // netproto.LoopConfig.Held
	// Listen returns a socket for the term, which closes it. nil: the address itself, which no other
	// term can serve.
	Listen func(*net.TCPListener) (*net.TCPListener, error)
	// Room says what other machines allow, and how long those who bring data wait; nil: all, at once.
	// The loop asks in each turn.
	Room  func() (storage.Level, time.Duration)
	Pulse time.Duration // how often the loop is asked whether it turns; a second if 0
	Over  func()        // is called when nothing is to be decided any more, before the store is closed, once or twice; may be nil
}

// ErrHandOver is the cause of the end of a term's context where another machine goes on and this
// one stays: the drain is short, and the supervisor is not told of an end.
var ErrHandOver = errors.New("the queues are handed over")

// handOverDrain is less than a takeover takes from a machine that dies.
const handOverDrain = time.Second

// Serve serves what a store holds until ctx ends, then drains and returns nil. It returns an error
// if the store cannot be recovered, or if a commit failed: then all connections are closed at once.
// It closes the store.
func (s *Server) Serve(ctx context.Context, opened *storage.Store, term Term) (err error) {
	store := Store(opened)
	if s.c.WrapStore != nil {
		store = s.c.WrapStore(opened)
	}
	defer func() {
		if e := store.Close(); e != nil && err == nil {
			err = fmt.Errorf("close data folder: %w", e)
		}
	}()
	clock, last := term.Clock, store.Control().Time
	if clock == nil {
		clock = func() int64 { return time.Now().UnixMilli() }
	}
	now := clock()
	if term.Clock == nil {
		now, _ = (&Moment{Last: last, Away: -1, Clocks: []int64{now}, Voters: 1}).Begins()
	}
	state, err := s.restore(ctx, store, opened.Accepted(), now, term.Held)
	switch {
	case err == nil:
	case errors.Is(err, context.Cause(ctx)): // there is nothing to drain
		return nil
	default:
		return err
	}
	if behind := time.Duration(last-now) * time.Millisecond; behind > storage.Jump {
		s.c.Logger.Warn("the clock is behind the last batch: times of batches run back", "behind", behind)
	}
	opened.GoBy(clock)
	disk := loopStore{store, s.health, term.Room, s.memory}
	machine := broker.New(disk, state, broker.Options{Cache: s.c.Cache, MaxPayload: int(s.c.MaxPayload), Logger: s.log, Defaults: s.live.defaults, Progress: s.health.getOn})
	loop, err := netproto.StartLoop(machine, disk, netproto.LoopConfig{
		Logger: s.c.Logger, Goroutines: s.c.Goroutines, Turned: s.turned, Clock: term.Clock, Held: term.Held,
		Tell: func(events []broker.Event) { logEvents(s.log, events) },
	})
	if err != nil {
		return err
	}
	doors, err := s.all.doors().lend(term)
	if err != nil {
		return errors.Join(err, loop.Close())
	}
	s.live.loop = loop
	s.store.Store(opened)
	s.health.serve(loop, term) // before a client can know that the server listens
	source := metrics.Source{Loop: loop, Store: opened, Recovery: state.Report, Users: s.live.users, Certificate: s.live.certs.until(), LastBackup: s.all.lastBackup, Turns: &s.turns}
	ended := make(chan error, len(doors)+1)
	s.figures.Serve(s.serveDoors(&doors, source, ended))
	s.doors.Store(&doors)
	defer s.doors.Store(nil)
	if term.Over == nil {
		term.Over = func() {}
	}
	err = errors.Join(s.goOn(ctx, doors, ended, term.Over), loop.Close())
	s.health.rest()
	term.Over()
	return err
}

// turned counts a turn of the loop.
func (s *Server) turned(took time.Duration) {
	s.turns.Add(took)
	if s.c.Turned != nil {
		s.c.Turned()
	}
}

// goOn goes on until ctx ends or a commit fails, and then drains. ended gets what each server
// returned. At the end of the drain it calls over: the loop may wait for other machines.
func (s *Server) goOn(ctx context.Context, doors listeners, ended <-chan error, over func()) error {
	if s.live.follow(ctx, s.c.Reloads) {
		most, stays := s.c.Drain, errors.Is(context.Cause(ctx), ErrHandOver)
		if stays {
			most = min(most, handOverDrain)
		} else {
			s.health.drain(most)
		}
		s.c.Logger.Info("draining", "at_most", most)
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
		if stays {
			defer cancel()
		} else {
			s.drained, s.closers = drain, append(s.closers, cancel)
			context.AfterFunc(drain, over)
		}
		if err := doors.shutdown(drain); err != nil {
			s.c.Logger.Warn("connections were closed that did not finish in time")
		}
	} else {
		s.health.phase.Store(int32(opening)) // what comes next, unless the process ends
		doors.close()
	}
	var errs []error
	for range doors {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// Follow carries out reloads until ctx ends, while a store follows another machine: its backups are
// served.
func (s *Server) Follow(ctx context.Context, store *storage.Store, leader Leader) {
	s.live.loop = nil
	s.store.Store(store)
	s.figures.Serve(metrics.Source{Store: store, Users: s.live.users, Certificate: s.live.certs.until(), LastBackup: s.all.lastBackup})
	s.health.follow(leader)
	s.live.follow(ctx, s.c.Reloads)
}

// newTime is within which a loop turns for the first time behind the last record of recovery, which
// may be long: it makes all queues, and nothing tells how far it is.
const newTime = 10 * time.Second

// GotOn says whether recovery or the loop got on within a time, or the loop waits for the disk. Any
// goroutine may ask.
func (s *Server) GotOn(within time.Duration) bool {
	if phase(s.health.phase.Load()) == recovering {
		within = max(within, newTime)
	}
	return s.health.onDisk.Load() || time.Since(time.Unix(0, s.health.got.Load())) < within
}

// Digest is of what must be the same on all machines that take turns: users and defaults of queues.
// Any goroutine may ask.
func (s *Server) Digest() string { return s.live.digest.Load().(string) }

// Doors are the sockets that lead to the queues, by protocol.
func (s *Server) Doors() map[string]*net.TCPListener {
	all := make(map[string]*net.TCPListener)
	for _, l := range s.all.doors() {
		all[l.protocol] = l.socket
	}
	return all
}

// MaxPassed is how many clients of each protocol may be passed on to another machine. Each of them
// takes two of the files that may be open.
func (s *Server) MaxPassed() int {
	files, _ := OpenFiles() // Begin has asked
	return max(1, min(s.c.MaxConns, ConnsWithin(files, 2*len(s.all.doors()), len(s.all.operators()) > 0)))
}

// Serves says whether a term is under way whose doors are open. Any goroutine may ask.
func (s *Server) Serves() bool { return s.doors.Load() != nil }

// Pass has a door of the term serve a connection of a client at remote. Any goroutine may call it.
func (s *Server) Pass(protocol string, nc net.Conn, remote netip.AddrPort) error {
	if doors := s.doors.Load(); doors != nil {
		for _, l := range doors.of(protocol) {
			l.server.(*netproto.Server).Pass(nc, remote)
			return nil
		}
	}
	return fmt.Errorf("nobody is served at %s by this machine", protocol)
}

// End closes all that is left, and returns err with what failed. The operator's port goes last, as
// it tells meanwhile how the others drain.
func (s *Server) End(err error) error {
	lasting := s.all.lasting()
	if s.drained != nil {
		_ = lasting.shutdown(s.drained)
	}
	s.close()
	for range lasting {
		err = errors.Join(err, <-s.ended)
	}
	if err == nil { // an error is told by who gets it
		s.c.Logger.Info("stopped")
	}
	return err
}

func (s *Server) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}
