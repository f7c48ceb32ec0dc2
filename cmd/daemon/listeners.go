package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/daemon/metrics"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/admin/page"
	"github.com/holdfast-queue/holdfast/netproto/barbershop"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"github.com/holdfast-queue/holdfast/netproto/resp"
)

// Off is the address of a listener that is not wanted, like the empty one.
const Off = "off"

// ErrExposed: an address is not loopback, TLS or users are missing, and Config.Insecure does not
// allow that.
var ErrExposed = errors.New("can be reached from other machines")

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
	metrics.Door
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
	tls      *tls.Config      // nil without encryption
	server   server           // nil before serve
}

// listeners belong to the goroutine of their server.
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
		{resp.SentinelName, c.Sentinel, "127.0.0.1:26379"},
	} {
		if l.address == "" || l.address == Off {
			continue
		}
		if err := c.checkAddress(l.protocol, l.address, l.example); err != nil {
			return nil, err
		}
		all = append(all, &listener{protocol: l.protocol, address: l.address})
	}
	if len(all.doors()) == 0 {
		return nil, errors.New("no protocol is served: pinpriq, barbershop or redis must have an address")
	}
	if len(all.of(resp.SentinelName)) > 0 && len(all.of(resp.Name)) == 0 {
		return nil, errors.New("--sentinel tells the address of --redis, which is off: give --redis an address, or leave --sentinel away")
	}
	return all, nil
}

// of are the listeners of some protocols.
func (all listeners) of(protocols ...string) listeners {
	return slices.DeleteFunc(slices.Clone(all), func(l *listener) bool { return !slices.Contains(protocols, l.protocol) })
}

// lasting are those that are served from the beginning to the end, whatever is served of queues.
func (all listeners) lasting() listeners { return all.of(admin.Name, resp.SentinelName) }

// doors are those that lead to the queues.
func (all listeners) doors() listeners { return all.of(pinpriq.Name, barbershop.Name, resp.Name) }

// lend returns copies of the listeners with sockets for a term.
func (all listeners) lend(t Term) (lent listeners, err error) {
	if t.Listen == nil {
		return all, nil
	}
	for _, l := range all {
		c := *l
		if c.socket, err = t.Listen(l.socket); err != nil {
			lent.close()
			return nil, fmt.Errorf("listen at %s again: %w", l.address, err)
		}
		lent = append(lent, &c)
	}
	return lent, nil
}

// operators is the operator's listener, if there is one.
func (all listeners) operators() listeners { return all.of(admin.Name) }

// lastBackup is the moment of the last whole backup that the operator's port has served.
func (all listeners) lastBackup() (at time.Time) {
	for _, l := range all.operators() {
		at = l.server.(*admin.Server).LastBackup()
	}
	return at
}

// encrypt has all listeners speak TLS; nil: none.
func (all listeners) encrypt(c *tls.Config) {
	for _, l := range all {
		l.tls = c
	}
}

// open says why strangers should not reach the server; "" if they may.
func (c *Config) open() string {
	switch encrypted, users := c.TLS.Cert != "", len(c.Users) > 0 || c.RedisPassword != ""; {
	case encrypted && users:
		return ""
	case encrypted:
		return "there are no users, so everybody may do everything"
	case users:
		return "nothing is encrypted, passwords neither"
	}
	return "nothing is encrypted, and everybody may do everything"
}

// checkAddress refuses an address that other machines reach, unless there are TLS and users, or the
// configuration allows it.
func (c *Config) checkAddress(protocol, address, example string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--%s: expected HOST:PORT, such as %s, or %s, got %q", protocol, example, Off, address)
	}
	why := c.open()
	if c.Insecure || why == "" || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("--%s: %q %w: %s", protocol, address, ErrExposed, why)
}

// warn says which doors are closed: nobody can log in there, and nobody is let in without.
func (all listeners) warn(c *Config, users *access.Control) {
	for _, l := range all {
		if users != nil && c.PlainUser == "" && c.TLS.ClientCA == "" && (l.protocol == pinpriq.Name || l.protocol == barbershop.Name) {
			c.Logger.Warn("door closed", "protocol", l.protocol, "reason", "there are users, and this protocol has no logins",
				"remedy", "name a user of its connections with --plain-user, ask for client certificates with --tls-client-ca, or switch it off with --"+l.protocol+" off")
		}
	}
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

// serveOperator serves the operator, who asks how the others are before those serve.
func (all listeners) serveOperator(c *Config, config admin.Config, ended chan<- error) {
	for _, l := range all.operators() {
		config.TLS = l.tls
		l.server = admin.NewServer(l.socket, config)
		l.accept(c, ended)
	}
}

// serveDoors serves the clients of the queues, and the page. It returns m with what can be measured
// of that.
func (s *Server) serveDoors(doors *listeners, m metrics.Source, ended chan<- error) metrics.Source {
	doors.warn(&s.c, s.live.users)
	m.Buffers = netproto.NewBuffers(s.c.MaxBuffers)
	m.Buffers.Within(s.memory.room)
	redis := resp.New(resp.Config{
		Users: s.live.users, Disable: s.c.RedisDisable, Version: s.c.Version, Since: time.Now(), Epoch: m.Store.Epoch(),
		Logger: s.log, Audit: s.audit, MaxPayload: int(s.c.MaxPayload),
	})
	var reviews []func()
	open := func(socket *net.TCPListener, config netproto.Config) *netproto.Server {
		config.Loop, config.Logger, config.Buffers = m.Loop, s.log, m.Buffers
		door := netproto.NewServer(socket, config)
		reviews = append(reviews, door.Review)
		return door
	}
	for _, l := range *doors {
		l.server = open(l.socket, netproto.Config{Protocol: s.c.protocol(l, s.live.users, redis), TLS: l.tls, MaxConns: s.c.MaxConns})
		l.accept(&s.c, ended)
	}
	inside := open(nil, netproto.Config{Protocol: redis, MaxConns: page.MaxConns})
	*doors = append(*doors, &listener{protocol: page.Name, server: inside})
	go func() { ended <- inside.Serve() }() // ends with shutdown or close
	if s.live.users != nil {
		s.live.users.Watch(reviews...)
	}
	m.Doors = make(map[string]metrics.Door)
	for _, l := range slices.Concat(s.all.lasting(), *doors) {
		m.Doors[l.protocol] = l.server
	}
	s.web.Serve(page.Source{Loop: m.Loop, Door: inside, Recent: redis.Recent, Figures: func(w *page.Whole) { fillIn(w, &m) }})
	for _, l := range s.all.operators() {
		s.c.Logger.Info("serving the page", "open", pageAddress(l.socket.Addr(), l.tls != nil))
	}
	return m
}

// accept has the server of the listener accept. ended gets what that returned.
func (l *listener) accept(c *Config, ended chan<- error) {
	go func() { ended <- l.server.Serve() }() // ends with shutdown or close
	c.Logger.Info("listening", "protocol", l.protocol, "addr", l.socket.Addr().String())
	if c.Listening != nil {
		c.Listening(l.protocol, l.socket.Addr())
	}
}

// pageAddress returns the address by which a browser on this machine shows the page.
func pageAddress(addr net.Addr, encrypted bool) string {
	at := addr.(*net.TCPAddr).AddrPort()
	host := at.Addr().Unmap().String()
	if at.Addr().IsUnspecified() { // all addresses, so this one, too
		host = "localhost"
	}
	scheme := "http"
	if encrypted {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(int(at.Port()))) + "/"
}

// protocol returns the protocol of a listener that leads to the queues.
func (c *Config) protocol(l *listener, users *access.Control, redis *resp.Protocol) netproto.Protocol {
	plain := access.Plain{Control: users, User: c.PlainUser}
	switch l.protocol {
	case pinpriq.Name:
		return pinpriq.Protocol{Users: plain}
	case barbershop.Name:
		return &barbershop.Protocol{Queue: c.BarbershopQueue, Version: c.Version, Users: plain, Since: time.Now()}
	}
	return redis
}

// control holds the users; nil if everybody may do everything.
func (c *Config) control() (*access.Control, error) {
	users, err := c.users()
	if users == nil || err != nil {
		return nil, err
	}
	return access.NewControl(users), nil
}

// users returns the users of the configuration; nil if there are none, nor a password.
func (c *Config) users() (*access.Users, error) {
	all, plain := c.Users, access.Plain{User: c.PlainUser}
	if c.RedisPassword != "" {
		all = append(slices.Clip(all), access.User{Name: access.Default, Password: c.RedisPassword, Grants: access.Everything(), Operate: true})
	}
	var users *access.Users
	if len(all) > 0 {
		var err error
		if users, err = access.NewUsers(all); err != nil {
			return nil, err
		}
	}
	if err := plain.Check(users); err != nil {
		return nil, fmt.Errorf("--plain-user: %w", err)
	}
	return users, nil
}

// shutdown drains the listeners at the same time. It returns an error if ctx ended first.
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
