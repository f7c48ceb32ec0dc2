package ask

import (
	"context"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Extend renews a claim.
type Extend struct {
	receipt
	Time time.Duration `arg:"" help:"How long the claim lasts from now on, such as 30s."`

	asking
}

func (c *Extend) Help() string {
	return `The work takes longer: the lease ends after the time from now, which may be sooner than before. If the claim has ended before, nothing is changed and the exit code is 4.

Example:

    holdfast extend jobs 17 42 5m`
}

func (c *Extend) Ask(ctx context.Context, _ *terminal.Process, server *client.Client) error {
	return c.packet(server).Extend(ctx, c.Time)
}
