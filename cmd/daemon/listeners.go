package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/barbershop"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"github.com/holdfast-queue/holdfast/netproto/resp"
)

// Off is the address of a listener that is not wanted, like the empty one.
const Off = "off"

// ErrExposed: an address is not loopback, and Config.Insecure does not allow that.
var ErrExposed = errors.New("can be reached from other machines, and nothing is encrypted")

// ListenError says which listener could not be opened.
type ListenError struct {
	Protocol string // the same word as the flag that sets its address
	Address  string
	Err      error
}

// Error names the listener.
func (e *ListenError) Error() string {
	return fmt.Sprintf("address %s of %s: %v", e.Address, e.Protocol, e.Err)
}

// Unwrap is the system's error.
func (e *ListenError) Unwrap() error { return e.Err }

// server serves one protocol on one listener.
type server interface {
	// Serve accepts until Shutdown or Close, and returns an error only if it had to stop earlier.
	Serve() error
	// Shutdown finishes what was received, at most until ctx ends; then it closes and returns its
	// error.
	Shutdown(ctx context.Context) error
	// Close ends everything at once.
	Close()
}

// listener is an address that is wanted. bind opens it, serve gives it a server.
type listener struct {
	protocol string
	address  string
	socket   *net.TCPListener // nil before bind
	server   server           // nil before serve
}

// listeners belong to the goroutine of Run.
type listeners []*listener

// listeners lists what the configuration wants, and refuses what must not be opened.
func (c *Config) listeners() (listeners, error) {
	if n := len(c.BarbershopQueue); n > pinpriq.MaxQueueName {
		return nil, fmt.Errorf("the name of the barbershop queue has %d bytes: expected at most %d", n, pinpriq.MaxQueueName)
	}
	if err := resp.CheckDisable(c.RedisDisable); err != nil {
		return nil, err
	}
	var all listeners
	for _, l := range []struct{ protocol, address, example string }{
		{pinpriq.Name, c.Pinpriq, "127.0.0.1:7070"},
		{barbershop.Name, c.Barbershop, "127.0.0.1:8002"},
		{resp.Name, c.Redis, "127.0.0.1:6379"},
		{admin.Name, c.Admin, "127.0.0.1:7072"},
	} {
		if l.address == "" || l.address == Off {
			continue
		}
		if err := c.checkAddress(l.protocol, l.address, l.example); err != nil {
			return nil, err
		}
		all = append(all, &listener{protocol: l.protocol, address: l.address})
	}
	if all.queues() == 0 {
		return nil, errors.New("no protocol is served: pinpriq, barbershop or redis must have an address")
	}
	return all, nil
}

// queues is how many listeners lead to the queues.
func (all listeners) queues() (n int) {
	for _, l := range all {
		if l.protocol != admin.Name {
			n++
		}
	}
	return n
}

// checkAddress refuses an address that other machines reach, unless the configuration allows it:
// there is no encryption.
func (c *Config) checkAddress(protocol, address, example string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address %q of %s: expected HOST:PORT, such as %s, or %s: %w", address, protocol, example, Off, err)
	}
	if c.Insecure || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("address %q of %s %w", address, protocol, ErrExposed)
}

// bind opens all listeners, or none.
func (all listeners) bind() error {
	for _, l := range all {
		socket, err := netproto.Listen(l.address)
		if err != nil {
			all.close()
			return &ListenError{Protocol: l.protocol, Address: l.address, Err: err}
		}
		l.socket = socket
	}
	return nil
}

// serve gives every listener its server and accepts on all. The channel gets what each server
// returned, in any order.
func (all listeners) serve(c *Config, loop *netproto.Loop, backup admin.Backup, log *slog.Logger) <-chan error {
	ended := make(chan error, len(all))
	buffers := netproto.NewBuffers(cmp.Or(c.MaxBuffers, defaultBuffers()))
	for _, l := range all {
		l.server = c.server(l, backup, netproto.Config{Loop: loop, Logger: log, MaxConns: c.MaxConns, Buffers: buffers})
		go func() { ended <- l.server.Serve() }() // ends with shutdown or close
	}
	return ended
}

// server makes the server of a listener.
func (c *Config) server(l *listener, backup admin.Backup, config netproto.Config) server {
	switch l.protocol {
	case pinpriq.Name:
		config.Protocol = pinpriq.Protocol{}
	case barbershop.Name:
		config.Protocol = &barbershop.Protocol{Queue: c.BarbershopQueue, Version: c.Version, Since: time.Now()}
	case resp.Name:
		config.Protocol = resp.New(resp.Config{Password: c.RedisPassword, Disable: c.RedisDisable, Version: c.Version, Since: time.Now(), Logger: config.Logger})
	default:
		return admin.NewServer(l.socket, admin.Config{Backup: backup, Logger: config.Logger, AnyHost: c.Insecure})
	}
	return netproto.NewServer(l.socket, config)
}

// shutdown drains all listeners at the same time. It returns an error if ctx ended first.
func (all listeners) shutdown(ctx context.Context) error {
	errs := make([]error, len(all))
	var drained sync.WaitGroup
	for i, l := range all {
		drained.Go(func() { errs[i] = l.server.Shutdown(ctx) }) // ends with ctx at the latest
	}
	drained.Wait()
	return errors.Join(errs...)
}

// close ends at once all that bind and serve began.
func (all listeners) close() {
	for _, l := range all {
		switch {
		case l.server != nil:
			l.server.Close()
		case l.socket != nil:
			_ = l.socket.Close()
		}
	}
}
