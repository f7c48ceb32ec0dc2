package ask

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// workload is what a bench works on: a queue of its own, or items on the board.
type workload struct {
	server loadgen.Spec // its address, and the way to it
	where  string       // for people
	fill   int64        // how many packets or items have to be there before the measurement

	filler, put, take loadgen.Group

	report benchReport // what it says of the workload
}

// queueWorkload chooses a queue that nobody else uses.
func (c *Bench) queueWorkload(ctx context.Context) (*workload, error) {
	addr, flag, push, pop := c.Pinpriq, "--pinpriq", loadgen.PinpriqPush, loadgen.PinpriqPop
	if c.Protocol == "redis" {
		addr, flag, push, pop = c.Redis, "--redis", loadgen.RedisLPush, loadgen.RedisRPop
	}
	server, err := c.spec(addr)
	if err != nil {
		return nil, err
	}
	queue := "holdfast.bench." + strings.ToLower(rand.Text()[:12])
	if err := c.try(ctx, server, flag, pop(queue)); err != nil {
		return nil, err
	}
	packets := loadgen.Packets{Queue: queue, Size: c.Size}
	w := &workload{server: server, where: fmt.Sprintf("in queue %q", queue), report: benchReport{Size: c.Size, Queue: queue}}
	w.put = c.group("push", func() loadgen.Protocol { return push(packets) })
	w.take = c.group("pop", func() loadgen.Protocol { return pop(queue) })
	w.filler = w.put
	if c.Mode == "pop" {
		w.fill = c.Count
	}
	return w, nil
}

// try makes one request. Its errors say more than those of the load generator, and nothing is left
// after them.
func (c *Bench) try(ctx context.Context, server loadgen.Spec, flag string, request loadgen.Protocol) error {
	conn, err := c.Dial(ctx, server.Addr, flag, c.Timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(c.Timeout))
	if server.Login != nil {
		_, err = loadgen.AskOn(ctx, conn, server.Login())
	}
	if err == nil {
		_, err = loadgen.AskOn(ctx, conn, request)
	}
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), `"NOAUTH `), strings.Contains(err.Error(), `"WRONGPASS `):
		err = fmt.Errorf("%w: %w", client.ErrDenied, err)
	case strings.Contains(err.Error(), `"NOPERM `):
		err = fmt.Errorf("%w: %w", client.ErrForbidden, err)
	case c.Protocol == "pinpriq" && errors.Is(err, io.EOF):
		err = fmt.Errorf("%w; if the server has users, show the certificate of one with --tls-cert, or start it with --plain-user", err)
	}
	return c.Explain(err, server.Addr)
}

// boardWorkload chooses items for the one board there is, which must be empty.
func (c *Bench) boardWorkload(ctx context.Context) (*workload, error) {
	there, err := countItems(ctx, c.Barbershop, c.Timeout, &c.Encryption)
	if err != nil {
		return nil, err
	}
	if there > 0 {
		return nil, fmt.Errorf("the board at %s has %s, which a bench would change: start a server of its own for it", c.Barbershop, terminal.Plural(there, "item"))
	}
	server, err := c.spec(c.Barbershop)
	if err != nil {
		return nil, err
	}
	const first = 1 << 31 // far from the numbers that people use
	items := loadgen.Items{First: first, Live: int(c.itemCount()), Seed: 1}
	w := &workload{server: server, where: "on the board", fill: c.itemCount()}
	w.report = benchReport{Items: items.Live}
	w.put = c.group("update", func() loadgen.Protocol { return loadgen.BarbershopUpdate(items) })
	w.take = c.group("next", func() loadgen.Protocol { return loadgen.BarbershopNext() })
	w.filler = c.group("fill", func() loadgen.Protocol { return loadgen.BarbershopFill(items) })
	w.filler.Conns, w.filler.Depth = 1, loadgen.MaxDepth/4
	return w, nil
}

// spec is the way to a server.
func (c *Bench) spec(addr string) (loadgen.Spec, error) {
	s := loadgen.Spec{Addr: addr}
	config, err := c.Config()
	if err != nil {
		return s, err
	}
	if config != nil {
		s.TLS = connection.ServerName(config, addr)
	}
	user, password, err := c.Login.Read()
	if c.Protocol == "redis" && password != "" {
		s.Login = func() loadgen.Protocol { return loadgen.RedisLogin(cmp.Or(user, access.Default), password) }
	}
	return s, err
}

// group is connections that do the same.
func (c *Bench) group(name string, protocol func() loadgen.Protocol) loadgen.Group {
	g := loadgen.Group{Name: name, Conns: c.Connections, Depth: c.Depth, Count: c.Count, New: protocol}
	switch {
	case c.Mode != "mixed":
	case name == "push" || name == "update":
		g.Conns = (c.Connections + 1) / 2
	default:
		g.Conns = c.Connections / 2
	}
	return g
}

// measure runs the load. What has to be there first is made outside the measurement.
func (c *Bench) measure(ctx context.Context, w *workload) (loadgen.Result, error) {
	spec := func(groups ...loadgen.Group) loadgen.Spec {
		s := w.server
		s.Groups, s.Limit = groups, c.Duration
		return s
	}
	if w.filler.Count = w.fill; w.fill > 0 {
		made, err := loadgen.Run(ctx, spec(w.filler))
		if err != nil {
			return loadgen.Result{}, err
		}
		if !made.Groups[0].Finished {
			return loadgen.Result{}, fmt.Errorf("only %d of the %d needed could be made in %v: use a longer --duration", made.Packets(), w.fill, c.Duration)
		}
	}
	switch c.Mode {
	case "mixed":
		return loadgen.Run(ctx, spec(w.put, w.take))
	case "pop", "next":
		return loadgen.Run(ctx, spec(w.take))
	}
	return loadgen.Run(ctx, spec(w.put))
}

// clean takes what the measurement has left, also after an interruption. It goes on for some
// windows after the first empty reply, since the last requests of a connection that was cut may
// still arrive.
func (c *Bench) clean(ctx context.Context, w *workload, atMost time.Duration) error {
	const (
		window  = 512
		empties = 8 * window
	)
	take := w.take.New
	spec := w.server
	spec.Limit = min(atMost, loadgen.MaxLimit)
	spec.Groups = []loadgen.Group{{
		Name: "clean", Conns: 1, Depth: window, Count: empties,
		New: func() loadgen.Protocol { return countEmpty{take()} },
	}}
	result, err := loadgen.Run(context.WithoutCancel(ctx), spec)
	if err == nil && !result.Groups[0].Finished {
		err = fmt.Errorf("they could not all be removed in %v", atMost)
	}
	if err != nil {
		return fmt.Errorf("some may be left %s: %w", w.where, err)
	}
	return nil
}

// countEmpty counts the requests that found nothing in place of the packets. A run of it ends when
// there is nothing more to take.
type countEmpty struct{ loadgen.Protocol }

func (e countEmpty) Consume(dst, src []byte) ([]byte, loadgen.Progress, error) {
	dst, p, err := e.Protocol.Consume(dst, src)
	p.Packets = p.Empty
	return dst, p, err
}
