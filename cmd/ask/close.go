package ask

import (
	"context"
	"fmt"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Close closes a queue.
type Close struct {
	Queue string `arg:"" predictor:"queue" help:"Queue to close. It is made if there is none."`

	terminal.Confirmation
	asking
}

func (c *Close) Help() string {
	return `A closed queue takes no more packets, for ever. Its consumers get what is in it, and then learn that it is closed. "holdfast pause QUEUE --in" is for a while.

Examples:

    holdfast close jobs
    holdfast close jobs --yes`
}

// Ask closes the queue. One that was closed before stays so.
func (c *Close) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	err := c.Confirm(p, fmt.Sprintf("close queue %.80q for ever", c.Queue))
	if err == nil {
		_, err = server.CloseQueue(ctx, c.Queue)
	}
	return err
}
