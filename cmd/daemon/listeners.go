package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/barbershop"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// Off is an address that says that a listener is not wanted. The empty one says it, too.
const Off = "off"

// ListenError says which listener could not be opened.
type ListenError struct {
	Protocol string // as the flag that sets its address is called
	Address  string
	Err      error
}

// Error says what was tried.
func (e *ListenError) Error() string {
	return fmt.Sprintf("address %s of %s: %v", e.Address, e.Protocol, e.Err)
}

// Unwrap is the system's error.
func (e *ListenError) Unwrap() error { return e.Err }

// listener is what accepts connections on one address.
type listener interface {
	Addr() net.Addr
	// Serve accepts until Shutdown or Close, and returns an error only if it had to stop earlier.
	Serve() error
	// Shutdown finishes what was received, at most until ctx ends; then it closes and returns its error.
	Shutdown(ctx context.Context) error
	// Close ends everything at once.
	Close()
}

// door is a listener that is wanted.
type door struct {
	protocol string
	example  string // of an address, for who has given none
	address  string
	listen   func(address string) (listener, error)
	listener listener // set by bind
}

// doors are the listeners of a server. They belong to the goroutine of Run.
type doors []*door

// doors lists what the configuration wants, and refuses what must not be opened. The protocols get
// their broker and the backups their store later, before anything is served.
func (c *Config) doors(p *protocols) (doors, error) {
	var all doors
	if n := len(c.BarbershopQueue); n > pinpriq.MaxQueueName {
		return nil, fmt.Errorf("the name of the barbershop queue has %d bytes: expected at most %d", n, pinpriq.MaxQueueName)
	}
	p.barbershop.Queue, p.barbershop.Version, p.barbershop.Since = c.BarbershopQueue, c.Version, time.Now()
	for _, d := range []door{
		{protocol: p.pinpriq.Name(), example: "127.0.0.1:7070", address: c.Pinpriq, listen: func(a string) (listener, error) {
			return netproto.Listen(a, c.server(&p.pinpriq))
		}},
		{protocol: p.barbershop.Name(), example: "127.0.0.1:8002", address: c.Barbershop, listen: func(a string) (listener, error) {
			return netproto.Listen(a, c.server(&p.barbershop))
		}},
		{protocol: admin.Name, example: "127.0.0.1:7072", address: c.Admin, listen: func(a string) (listener, error) {
			return admin.Listen(a, admin.Config{Backup: p.copy, Logger: c.Logger, AnyHost: c.Insecure})
		}},
	} {
		if d.address == "" || d.address == Off {
			continue
		}
		if err := c.checkAddress(&d); err != nil {
			return nil, err
		}
		all = append(all, &d)
	}
	if all.queues() == 0 {
		return nil, errors.New("no protocol is served: pinpriq or barbershop must have an address")
	}
	return all, nil
}

// queues is how many doors lead to the queues.
func (all doors) queues() (n int) {
	for _, d := range all {
		if d.protocol != admin.Name {
			n++
		}
	}
	return n
}

// protocols is what the doors serve.
type protocols struct {
	pinpriq    pinpriq.Protocol
	barbershop barbershop.Protocol
	backup     admin.Backup
}

// copy hands out a backup of the store that is open by the time of the call.
func (p *protocols) copy(ctx context.Context, w admin.Writer, r admin.Request) error {
	return p.backup(ctx, w, r)
}

// serve gives every protocol its broker.
func (p *protocols) serve(b *broker.Broker) {
	p.pinpriq.Broker, p.barbershop.Broker = b, b
}

// checkAddress refuses to serve strangers: there is neither encryption nor authentication, so an
// address that other machines reach must be asked for.
func (c *Config) checkAddress(d *door) error {
	host, _, err := net.SplitHostPort(d.address)
	if err != nil {
		return fmt.Errorf("address %q of %s: expected HOST:PORT, such as %s, or %s: %w", d.address, d.protocol, d.example, Off, err)
	}
	if c.Insecure || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("address %q of %s can be reached from other machines, and the protocol has neither encryption nor passwords: "+
		"use a loopback address such as 127.0.0.1, or --insecure on a network you trust", d.address, d.protocol)
}

// bind opens all listeners, or none.
func (all doors) bind() error {
	for _, d := range all {
		l, err := d.listen(d.address)
		if err != nil {
			all.close()
			return &ListenError{Protocol: d.protocol, Address: d.address, Err: err}
		}
		d.listener = l
	}
	return nil
}

// serve accepts on all listeners; the channel gets what each returned, in any order.
func (all doors) serve() <-chan error {
	ended := make(chan error, len(all))
	for _, d := range all {
		go func() { ended <- d.listener.Serve() }() // ends with shutdown or close
	}
	return ended
}

// shutdown drains all listeners at the same time; it returns an error if ctx ended before that was done.
func (all doors) shutdown(ctx context.Context) error {
	errs := make([]error, len(all))
	var drained sync.WaitGroup
	for i, d := range all {
		drained.Go(func() { errs[i] = d.listener.Shutdown(ctx) }) // ends with ctx at the latest
	}
	drained.Wait()
	return errors.Join(errs...)
}

// close ends all that bind opened at once.
func (all doors) close() {
	for _, d := range all {
		if d.listener != nil {
			d.listener.Close()
		}
	}
}
