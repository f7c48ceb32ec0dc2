package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Delete deletes packets by their ids.
type Delete struct {
	Queue string   `arg:"" predictor:"queue" help:"Queue of the packets."`
	IDs   []string `arg:"" name:"id" help:"Ids of the packets, 1000 at most."`
	JSON  bool     `help:"Print a JSON object with the number of packets."`

	terminal.Confirmation
	asking
}

func (c *Delete) Help() string {
	return `Deletes packets in any state, claimed ones too: their consumers can no longer acknowledge them. "holdfast purge" deletes many by their state or tags. If none of them is there, the exit code is 3.

Examples:

    holdfast delete jobs 17 18
    holdfast delete jobs 17 --yes`
}

func (c *Delete) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	n, err := c.delete(ctx, p, server)
	if err = cmp.Or(err, noSuchID(c.Queue, n)); err != nil {
		return err
	}
	return (&bulk{JSON: c.JSON}).tell(p.Stdout, &change{what: "packet", done: "deleted"}, "", n)
}

// delete returns how many it deleted, after it was confirmed.
func (c *Delete) delete(ctx context.Context, p *terminal.Process, server *client.Client) (int64, error) {
	if !c.Yes {
		n, err := c.there(ctx, server)
		if n == 0 || err != nil {
			return 0, err
		}
		if err := c.Confirm(p, fmt.Sprintf("delete %s of queue %.80q", terminal.Plural(n, "packet"), c.Queue)); err != nil {
			return 0, err
		}
	}
	return server.Delete(ctx, c.Queue, c.IDs...)
}

// there counts the packets that would be deleted; those that the user may not look at, too.
func (c *Delete) there(ctx context.Context, server *client.Client) (n int, err error) {
	for _, id := range c.IDs {
		switch _, err := server.Show(ctx, c.Queue, id); {
		case err == nil, errors.Is(err, client.ErrForbidden):
			n++
		case !errors.Is(err, client.ErrNoPacket) && !errors.Is(err, client.ErrNoQueue):
			return 0, err
		}
	}
	return n, nil
}
