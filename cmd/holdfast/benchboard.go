package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/loadgen"
)

// board tells whether the measurement is of the board.
func (c *benchCmd) board() bool { return c.Protocol == "barbershop" }

// runBoard measures the board and prints. There is no other board to measure on, so whoever's items
// are on it come first.
func (c *benchCmd) runBoard(ctx context.Context, p *program) error {
	items, err := countItems(ctx, c.Barbershop, c.Timeout)
	if err != nil {
		return err
	}
	if items > 0 {
		return fmt.Errorf("the board at %s has %s, which a measurement would change: start a server of its own for it", c.Barbershop, plural(items, "item"))
	}
	own := c.ownItems()
	result, err := c.measureBoard(ctx, own)
	var foreign *foreignItemError
	switch {
	case errors.As(err, &foreign):
		err = fmt.Errorf("%w; items %d to %d of the measurement are left there", err, own.First+1, own.First+uint32(own.Live))
	case !c.Keep:
		err = errors.Join(err, c.cleanBoard(ctx, own, c.cleanTime()))
	}
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	report := newBenchReport(c, &result)
	if c.Keep {
		report.FirstItem, report.LastItem = own.First+1, own.First+uint32(own.Live)
	}
	return report.print(p.stdout, c.JSON)
}

// liveItems is how many items are made: enough that nobody finds the board empty.
func (c *benchCmd) liveItems() int64 {
	if c.Mode == "update" {
		return int64(c.Items)
	}
	return max(c.Count, int64(c.Items))
}

// ownItems chooses the items of a measurement: high numbers, so that other people's are told from them.
func (c *benchCmd) ownItems() loadgen.Items {
	const low = 1 << 31
	live := uint32(c.liveItems()) // at most loadgen.MaxItems
	return loadgen.Items{First: low + rand.Uint32N(math.MaxUint32-low-live), Live: int(live), Seed: 1}
}

// measureBoard runs the load; the items are made beforehand, outside the measurement.
func (c *benchCmd) measureBoard(ctx context.Context, items loadgen.Items) (loadgen.Result, error) {
	fill := loadgen.Group{Name: "fill", Conns: 1, Depth: loadgen.MaxDepth / 4, Count: int64(items.Live),
		New: func() loadgen.Protocol { return loadgen.BarbershopFill(items) }}
	filled, err := loadgen.Run(ctx, c.spec(fill))
	if err != nil {
		return filled, err
	}
	if !filled.Groups[0].Finished {
		return filled, fmt.Errorf("only %d of %d items could be made for it in %v: use a longer --duration", filled.Packets(), items.Live, c.Duration)
	}
	update := loadgen.Group{Name: "update", Depth: c.Depth, Count: c.Count, Conns: c.connectionsOf("update"),
		New: func() loadgen.Protocol { return loadgen.BarbershopUpdate(items) }}
	next := loadgen.Group{Name: "next", Depth: c.Depth, Count: c.Count, Conns: c.connectionsOf("next"),
		New: func() loadgen.Protocol { return takeOwn(items) }}
	switch c.Mode {
	case "update":
		return loadgen.Run(ctx, c.spec(update))
	case "next":
		return loadgen.Run(ctx, c.spec(next))
	}
	return loadgen.Run(ctx, c.spec(update, next))
}

// cleanBoard takes what is left of the measurement's items, also after an interruption.
func (c *benchCmd) cleanBoard(ctx context.Context, own loadgen.Items, atMost time.Duration) error {
	if err := c.empty(ctx, atMost, func() loadgen.Protocol { return takeOwn(own) }); err != nil {
		return fmt.Errorf("items may be left on the board: %w", err)
	}
	return nil
}

// ownTaking takes items, and fails when one of them is not of the measurement.
type ownTaking struct {
	loadgen.Protocol
	items loadgen.Items
}

func takeOwn(items loadgen.Items) loadgen.Protocol {
	return ownTaking{loadgen.BarbershopNext(), items}
}

// Consume implements loadgen.Protocol.
func (o ownTaking) Consume(dst, src []byte) ([]byte, loadgen.Progress, error) {
	dst, p, err := o.Protocol.Consume(dst, src)
	for replies := src[:p.Used]; len(replies) > 0; {
		var item uint64
		i := 0
		for ; replies[i] >= '0' && replies[i] <= '9'; i++ { // it is a number, or -1, as each of them has been checked
			item = item*10 + uint64(replies[i]-'0')
		}
		if i > 0 && item-uint64(o.items.First)-1 >= uint64(o.items.Live) {
			return dst, p, &foreignItemError{item}
		}
		replies = replies[bytes.IndexByte(replies, '\n')+1:]
	}
	return dst, p, err
}

// foreignItemError: an item was taken that is not of the measurement.
type foreignItemError struct{ item uint64 }

// Error says what has happened and what is to be done.
func (e *foreignItemError) Error() string {
	return fmt.Sprintf("somebody else uses the board: item %d was taken off it, and perhaps others behind it; update them anew, and measure where nobody does", e.item)
}
