package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Claim claims packets.
type Claim struct {
	Queues   []string       `word:"OR" arg:"" predictor:"queue" name:"queue" help:"Queues to claim from: the first that has a packet."`
	Count    int64          `range:"1 1000" placeholder:"N" help:"Claim up to N packets (default: one)."`
	Fill     time.Duration  `placeholder:"TIME" help:"Wait for --count packets, but once there is one no longer than this; then claim what there is (default: do not wait)."`
	Lease    time.Duration  `range:"1ms" placeholder:"TIME" help:"How long the claim lasts (default: what the queue says)."`
	Consumer string         `placeholder:"NAME" help:"Name of who claims, which list and show print (default: a name of this process)."`
	Block    *time.Duration `placeholder:"TIME" help:"How long to wait for a packet; 0s waits without end (default: do not wait)."`
	Newest   bool           `help:"Claim the newest packet of the best priority (default: the oldest)."`
	Group    bool           `help:"Claim with a packet all others of its key."`

	selection
	packetsForm
	asking
}

func (c *Claim) Help() string {
	return `Prints the packets with their ids and tokens. Each goes to another consumer when its lease ends, unless "holdfast ack" or "holdfast nack" comes before. If the queues have nothing to claim, nothing is printed and the exit code is 3, or 1 if they are closed as well.

Examples:

    holdfast claim jobs
    holdfast claim urgent jobs --lease 5m --block 10s --json
    holdfast claim tasks --filter 'performance_class<=high' --consumer node-7`
}

func (c *Claim) Validate() error {
	if c.Group && c.Count > 0 {
		return fmt.Errorf("--group and --count: expected one of them")
	}
	if c.Fill > 0 && (c.Count == 0 || len(c.Queues) > 1) {
		return fmt.Errorf("--fill: expected --count with it, and one queue")
	}
	return c.selection.Validate()
}

func (c *Claim) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	packets, err := server.Claim(ctx, c.Queues[0], c.options()...)
	switch {
	case err != nil:
		return err
	case len(packets) == 0:
		return c.nothing()
	}
	return c.print(p.Stdout, packets)
}

// nothing is the error that says so.
func (c *Claim) nothing() error {
	if len(c.Queues) == 1 {
		return fmt.Errorf("queue %.80q has %w to claim", c.Queues[0], ErrNothing)
	}
	return fmt.Errorf("the %d queues have %w to claim", len(c.Queues), ErrNothing)
}

func (c *Claim) options() []client.Option {
	return slices.Concat(
		c.selection.options(), when(true, client.Or(c.Queues[1:]...)), atMost(c.Count), unlessZero(c.Fill, client.Fill), unlessZero(c.Lease, client.Lease),
		unlessZero(c.Consumer, client.As), given(c.Block, client.Block), when(c.Newest, client.Newest()), when(c.Group, client.Group()),
	)
}

// print writes the packets with what an answer needs first. It does so after a signal, too, as a
// terminal.List would not: nobody else knows the tokens.
func (c *Claim) print(w io.Writer, packets []*client.Packet) error {
	t, now := terminal.NewTable(w, "QUEUE", "KEY", "TAGS", "PAYLOAD"), time.Now()
	if !c.JSON {
		t.Row("QUEUE", "ID", "TOKEN", "ATTEMPT", "LEFT", "KEY", "TAGS", "PAYLOAD")
	}
	for _, p := range packets {
		if c.JSON {
			if err := packetJSON(p).Print(w); err != nil {
				return err
			}
			continue
		}
		t.Row(terminal.Cell(p.Queue), p.ID, strconv.FormatInt(p.Token, 10), strconv.Itoa(p.Attempt), terminal.Span(p.LeaseEnd.Sub(now)),
			keyCell(p), tagsCell(p.Tags), terminal.Cell(string(p.Payload)))
	}
	return t.Flush()
}

// receipt is the arguments that name a claim.
type receipt struct {
	Queue string `arg:"" predictor:"queue" help:"Queue of the packet."`
	ID    string `arg:"" help:"Id of the packet."`
	Token int64  `arg:"" help:"Token of the claim."`
}

// cost is the flag of those that end claims.
type cost struct {
	Cost int64 `range:"1 1000000" placeholder:"n" help:"The rates of the queue and of the packet's share count the claim as n takes."`
}

func (c *cost) of(p *client.Packet) *client.Packet {
	p.Cost = c.Cost
	return p
}

func (r *receipt) packet(server *client.Client) *client.Packet {
	return server.Claimed(r.Queue, r.ID, r.Token)
}

// Ack acknowledges a packet.
type Ack struct {
	receipt
	cost
	asking
}

func (c *Ack) Help() string {
	return `The work is done: the packet is gone, or stays as done for the time that its queue's setting retain says. If the claim has ended before, nothing is changed and the exit code is 4.

Examples:

    holdfast ack jobs 17 42
    holdfast ack jobs 17 42 --cost 1200`
}

func (c *Ack) Ask(ctx context.Context, _ *terminal.Process, server *client.Client) error {
	return c.of(c.packet(server)).Ack(ctx)
}

// Nack returns a packet.
type Nack struct {
	receipt
	cost
	Delay  *time.Duration `xor:"then" placeholder:"TIME" help:"When it can be taken again (default: after the queue's backoff)."`
	Reason string         `placeholder:"TEXT" help:"Why it failed, which list and show print."`
	Dead   bool           `xor:"then,tried" help:"It is not tried again."`

	Uncounted bool `xor:"tried" help:"It was no attempt: max-attempts does not count the claim, and the packet can be taken again at once, or after --delay."`

	Hold *time.Duration `xor:"then,tried" placeholder:"TIME" help:"The share of the packet rests for so long, up to 24h, as after HTTP 429; or the queue if it has no share-by. The packet returns as with --uncounted."`

	asking
}

func (c *Nack) Help() string {
	return `The work failed: the packet is tried again later, or is dead after its last attempt. Prints its state then: ready, delayed, dead, expired or cancelled. If the claim has ended before, nothing is changed and the exit code is 4.

Examples:

    holdfast nack jobs 17 42 --reason "no route to host"
    holdfast nack jobs 17 42 --delay 10m
    holdfast nack jobs 17 42 --uncounted --reason "this node goes down"
    holdfast nack jobs 17 42 --hold 30s --reason "429 of acme"
    holdfast nack jobs 17 42 --dead --reason "not a picture"`
}

func (c *Nack) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	state, err := c.of(c.packet(server)).Nack(ctx, c.why())
	if err == nil {
		_, err = fmt.Fprintln(p.Stdout, state)
	}
	return err
}

func (c *Nack) why() error {
	reason := errors.New(c.Reason)
	switch {
	case c.Dead:
		return client.Dead(reason)
	case c.Hold != nil:
		return client.Hold(*c.Hold, reason)
	case c.Uncounted:
		var delay time.Duration
		if c.Delay != nil {
			delay = *c.Delay
		}
		return client.Uncounted(delay, reason)
	case c.Delay != nil:
		return client.RetryIn(*c.Delay, reason)
	}
	return reason
}

// Extend renews a claim.
type Extend struct {
	receipt
	Time time.Duration `arg:"" help:"How long the claim lasts from now on, such as 30s."`

	asking
}

func (c *Extend) Help() string {
	return `The work takes longer: the lease ends after the time from now, which may be sooner than before. If the claim has ended before, or the packet was cancelled, nothing is changed and the exit code is 4.

Example:

    holdfast extend jobs 17 42 5m`
}

func (c *Extend) Ask(ctx context.Context, _ *terminal.Process, server *client.Client) error {
	return c.packet(server).Extend(ctx, c.Time)
}
