package ask

import (
	"context"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// gateForm is the arguments of a command that closes or opens gates of a queue.
type gateForm struct {
	Queue string `arg:"" predictor:"queue" help:"Name of the queue."`
	In    bool   `help:"Only pushes."`
	Out   bool   `help:"Only takes."`

	settingsForm
}

// change gives the gates a value: both unless one is chosen. The queue must be there, unless it may
// be made.
func (f *gateForm) change(ctx context.Context, p *terminal.Process, server *client.Client, paused string, create bool) error {
	var changes config.SettingChanges
	if f.In || !f.Out {
		changes.Add("pause-in", paused)
	}
	if f.Out || !f.In {
		changes.Add("pause-out", paused)
	}
	return f.settingsForm.change(ctx, p, server, f.Queue, !create, &changes)
}

// Pause closes gates of a queue for a while.
type Pause struct {
	gateForm
	Create bool `help:"Make the queue if there is none."`
}

func (c *Pause) Help() string {
	return `Nothing is pushed to the queue and nothing is taken from it until "holdfast resume". Pushes are refused, or wait if the queue has full=block. Consumers wait. What is claimed can be acknowledged, and "holdfast list" sees everything. If there is no such queue, the exit code is 3.

Examples:

    holdfast pause jobs
    holdfast pause jobs --out
    holdfast pause soon --create`
}

func (c *Pause) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	return c.change(ctx, p, server, "yes", c.Create)
}

// Resume opens gates of a queue.
type Resume struct{ gateForm }

func (c *Resume) Help() string {
	return `Ends what "holdfast pause" began. Clients that wait for it are served at once. If there is no such queue, the exit code is 3.

Examples:

    holdfast resume jobs
    holdfast resume jobs --in`
}

func (c *Resume) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	return c.change(ctx, p, server, "no", false)
}
