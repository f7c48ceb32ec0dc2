package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/load"
)

// board tells whether the measurement is of the board.
func (c *benchCmd) board() bool { return c.Protocol == "barbershop" }

// runBoard measures the board and prints. There is no other board to measure on, so whoever's items
// are on it come first.
func (c *benchCmd) runBoard(ctx context.Context, p *program) error {
	items, err := c.countItems(ctx)
	if err != nil {
		return err
	}
	if items > 0 {
		return fmt.Errorf("the board at %s has %d items, which a measurement would change: start a server of its own for it", c.Barbershop, items)
	}
	result, err := c.measureBoard(ctx)
	if !c.Keep {
		err = errors.Join(err, c.cleanBoard(ctx))
	}
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	report := newBenchReport(c, &result)
	return report.print(p.stdout, c.JSON)
}

// countItems asks the server how many items are on the board.
func (c *benchCmd) countItems(ctx context.Context) (int64, error) {
	dialer := net.Dialer{Timeout: c.Timeout}
	conn, err := dialer.DialContext(ctx, "tcp", c.Barbershop)
	if err != nil {
		return 0, dialError(err, c.Barbershop, "--barbershop")
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(c.Timeout)); err != nil {
		return 0, err
	}
	if _, err := io.WriteString(conn, "stats\r\n"); err != nil {
		return 0, fmt.Errorf("ask %s for its statistics: %w", c.Barbershop, err)
	}
	in := bufio.NewScanner(conn)
	for in.Scan() {
		if number, ok := strings.CutPrefix(in.Text(), "STAT items "); ok {
			return strconv.ParseInt(number, 10, 64)
		}
		if !strings.HasPrefix(in.Text(), "STAT ") {
			break
		}
	}
	if err := in.Err(); err != nil {
		return 0, fmt.Errorf("the server at %s does not say how many items it has: %w; check that it speaks barbershop", c.Barbershop, err)
	}
	return 0, fmt.Errorf("the server at %s does not say how many items it has; check that it speaks barbershop", c.Barbershop)
}

// measureBoard runs the load; the items are made beforehand, outside the measurement.
func (c *benchCmd) measureBoard(ctx context.Context) (load.Result, error) {
	items := load.Items{Live: c.Items, Seed: 1}
	if c.Mode == "next" {
		items.Live = int(max(c.Count, int64(c.Items)))
	}
	if err := items.Check(); err != nil {
		return load.Result{}, err
	}
	fill := load.Group{Name: "fill", Conns: 1, Depth: load.MaxDepth / 4, Count: int64(items.Live),
		New: func() load.Protocol { return load.BarbershopFill(items) }}
	filled, err := load.Run(ctx, c.spec(fill))
	if err != nil {
		return filled, err
	}
	if !filled.Groups[0].Finished {
		return filled, fmt.Errorf("only %d of %d items could be made for it in %v: use a longer --duration", filled.Packets(), items.Live, c.Duration)
	}
	update := load.Group{Name: "update", Depth: c.Depth, Count: c.Count, Conns: c.connectionsOf("update"),
		New: func() load.Protocol { return load.BarbershopUpdate(items) }}
	next := load.Group{Name: "next", Depth: c.Depth, Count: c.Count, Conns: c.connectionsOf("next"),
		New: func() load.Protocol { return load.BarbershopNext(false) }}
	switch c.Mode {
	case "update":
		return load.Run(ctx, c.spec(update))
	case "next":
		return load.Run(ctx, c.spec(next))
	}
	return load.Run(ctx, c.spec(update, next))
}

// cleanBoard takes what is left on the board, which was empty, also after an interruption.
func (c *benchCmd) cleanBoard(ctx context.Context) error {
	const (
		window  = 512
		empties = 8 * window // what the last connections had sent may still be coming in
		atMost  = time.Minute
	)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), atMost)
	defer cancel()
	_, err := load.Run(limited, load.Spec{Addr: c.Barbershop, Limit: atMost, Groups: []load.Group{{
		Name: "clean", Conns: 1, Depth: window, Count: empties,
		New: func() load.Protocol { return emptying{load.BarbershopNext(false)} },
	}}})
	if err != nil {
		return fmt.Errorf("items may be left on the board: %w", err)
	}
	return nil
}
