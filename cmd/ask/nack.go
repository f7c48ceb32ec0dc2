package ask

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Nack returns a packet.
type Nack struct {
	receipt
	Delay  *time.Duration `xor:"then" placeholder:"TIME" help:"When it can be taken again (default: after the queue's backoff)."`
	Reason string         `placeholder:"TEXT" help:"Why it failed, which list and show print."`
	Dead   bool           `xor:"then,tried" help:"It is not tried again."`

	Uncounted bool `xor:"tried" help:"It was no attempt: max-attempts does not count the claim, and the packet can be taken again at once, or after --delay."`

	asking
}

func (c *Nack) Help() string {
	return `The work failed: the packet is tried again later, or is dead after its last attempt. Prints its state then: ready, delayed, dead or expired. If the claim has ended before, nothing is changed and the exit code is 4.

Examples:

    holdfast nack jobs 17 42 --reason "no route to host"
    holdfast nack jobs 17 42 --delay 10m
    holdfast nack jobs 17 42 --uncounted --reason "this node goes down"
    holdfast nack jobs 17 42 --dead --reason "not a picture"`
}

func (c *Nack) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	state, err := c.packet(server).Nack(ctx, c.why())
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
