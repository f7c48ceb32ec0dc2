package ask

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Shares shows the shares of a queue.
type Shares struct {
	Queue string `arg:"" predictor:"queue" help:"Queue to look at."`
	JSON  bool   `help:"Print a JSON object for each share, one a line. Ages are milliseconds."`

	asking
}

func (c *Shares) Help() string {
	return `Prints the shares of a queue that has share-by: how many packets of each are ready and claimed, how old the oldest ready one is, its weight, and where holdfast share says so, how many at most may be claimed, how fast they are taken, and what keeps it from giving packets now. Those with most packets ready come first. The share without a name has the packets without the key or tag. If there is no such queue, the exit code is 3.

Examples:

    holdfast shares jobs | head
    holdfast shares jobs --json`
}

func (c *Shares) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	all, err := server.Shares(ctx, c.Queue)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b client.Share) int { return cmp.Or(cmp.Compare(b.Ready, a.Ready), cmp.Compare(a.Name, b.Name)) })
	l := p.List(c.JSON, []string{"SHARE", "READY", "CLAIMED", "AGE", "WEIGHT", "MAX-CLAIMED", "RATE", "WHY"}, "SHARE")
	for _, s := range all {
		o, age, most := new(terminal.JSON), "", ""
		o.Bytes("share", []byte(s.Name))
		o.Add("ready", s.Ready)
		o.Add("claimed", s.Claimed)
		if s.Ready > 0 {
			age = terminal.Span(s.Age.Round(time.Second))
			o.Add("age", s.Age.Milliseconds())
		}
		o.Add("weight", s.Weight)
		if s.MaxClaimed > 0 {
			most = terminal.Decimal(s.MaxClaimed)
			o.Add("max-claimed", s.MaxClaimed)
		}
		if s.Rate != "" {
			o.Add("rate", s.Rate)
		}
		if s.Rests > 0 {
			o.Add("rests", s.Rests.Milliseconds())
		}
		o.Text("why", s.Why)
		o.Moment("until", s.Until)
		l.Add(o, terminal.Cell(s.Name), terminal.Decimal(s.Ready), terminal.Decimal(s.Claimed), age, terminal.Decimal(s.Weight), most, s.Rate, s.Why)
	}
	return l.Flush()
}

// Share changes what one share of a queue has of its own.
type Share struct {
	Queue  string `arg:"" predictor:"queue" help:"Queue of the share."`
	Share  string `arg:"" help:"Name of the share: the key of its packets, or the value of their tag. Empty: those without one."`
	Weight int    `range:"1 1000" placeholder:"n" help:"Give it n turns where others have one, up to 1000."`
	Reset  bool   `help:"Forget what was set."`

	MaxClaimed int64 `word:"MAX-CLAIMED" range:"1 4294967295" placeholder:"n" help:"Let at most n of its packets be claimed at once, whatever share-max-claimed of the queue says."`

	Rate string `placeholder:"n/TIME" help:"Let its packets be taken so fast at most, such as 10/1m, whatever share-rate of the queue says. no: as that says."`

	Hold *time.Duration `placeholder:"TIME" help:"Deliver nothing of it for so long, up to 24h. 0s ends that."`

	asking
}

func (c *Share) Help() string {
	return `Sets what one share of a queue has of its own, whether it has packets or not. It lasts until it is reset, or the queue is dropped. The queue is made if there is none, and has settings of its own then.

Examples:

    holdfast share jobs acme --weight 10
    holdfast share jobs acme --max-claimed 3
    holdfast share jobs acme --rate 100/1m
    holdfast share jobs acme --hold 10m
    holdfast share jobs acme --reset`
}

func (c *Share) Ask(ctx context.Context, _ *terminal.Process, server *client.Client) error {
	options := slices.Concat(unlessZero(c.Weight, client.Weight), unlessZero(c.MaxClaimed, client.MaxClaimed), unlessZero(c.Rate, client.Rate), given(c.Hold, client.Rest))
	switch {
	case c.Reset == (len(options) > 0):
		return UsageError{errors.New("expected --weight, --max-claimed, --rate, --hold or --reset")}
	case c.Reset:
		return server.ResetShare(ctx, c.Queue, c.Share)
	}
	return server.SetShare(ctx, c.Queue, c.Share, options...)
}
