package ask

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Shares shows the shares of a queue.
type Shares struct {
	Queue string `arg:"" predictor:"queue" help:"Queue to look at."`
	Top   int    `range:"1 1000" placeholder:"n" help:"Print only the n shares with most packets ready, up to 1000."`
	JSON  bool   `help:"Print a JSON object for each share, one a line. Ages are milliseconds."`

	asking
}

func (c *Shares) Help() string {
	return `Prints the shares of a queue that has share-by: how many packets of each are ready and claimed, how old the oldest ready one is, and its weight. Shares with a weight of their own come first, with packets or without. The share without a name has the packets without the key or tag. If there is no such queue, the exit code is 3.

Examples:

    holdfast shares jobs
    holdfast shares jobs --top 10 --json`
}

func (c *Shares) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	all, err := server.Shares(ctx, c.Queue, c.Top)
	if err != nil {
		return err
	}
	l := p.List(c.JSON, []string{"SHARE", "READY", "CLAIMED", "AGE", "WEIGHT"}, "SHARE")
	for _, s := range all {
		o, age := new(terminal.JSON), ""
		o.Bytes("share", []byte(s.Name))
		o.Add("ready", s.Ready)
		o.Add("claimed", s.Claimed)
		if s.Ready > 0 {
			age = terminal.Span(s.Age.Round(time.Second))
			o.Add("age", s.Age.Milliseconds())
		}
		o.Add("weight", s.Weight)
		l.Add(o, terminal.Cell(s.Name), terminal.Decimal(s.Ready), terminal.Decimal(s.Claimed), age, terminal.Decimal(s.Weight))
	}
	return l.Flush()
}

// Share changes what one share of a queue has of its own.
type Share struct {
	Queue  string `arg:"" predictor:"queue" help:"Queue of the share."`
	Share  string `arg:"" help:"Name of the share: the key of its packets, or the value of their tag. Empty: those without one."`
	Weight int    `range:"1 1000" placeholder:"n" help:"Give it n turns where others have one, up to 1000."`
	Reset  bool   `help:"Forget what was set."`

	asking
}

func (c *Share) Help() string {
	return `Sets what one share of a queue has of its own, whether it has packets or not. It lasts until it is reset, or the queue is dropped. The queue is made if there is none, and has settings of its own then.

Examples:

    holdfast share jobs acme --weight 10
    holdfast share jobs acme --reset`
}

func (c *Share) Ask(ctx context.Context, _ *terminal.Process, server *client.Client) error {
	switch {
	case c.Reset == (c.Weight != 0):
		return UsageError{errors.New("expected --weight or --reset")}
	case c.Reset:
		return server.ResetShare(ctx, c.Queue, c.Share)
	}
	return server.SetWeight(ctx, c.Queue, c.Share, c.Weight)
}
