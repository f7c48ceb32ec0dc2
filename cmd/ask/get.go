package ask

import (
	"context"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Get prints settings.
type Get struct {
	Queue string `arg:"" predictor:"queue" help:"Queue to look at."`

	settingsForm
}

func (c *Get) Help() string {
	return `Prints the settings of a queue, those that nobody has set, too. "holdfast set --help" explains them. If there is no such queue, the exit code is 3.

Examples:

    holdfast get jobs
    holdfast get jobs --json`
}

func (c *Get) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	settings, err := server.Get(ctx, c.Queue)
	if err != nil {
		return err
	}
	return c.print(p.Stdout, settings)
}
