package main

import (
	"context"
	"slices"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// redriveCmd gives dead packets another chance.
type redriveCmd struct {
	Queue string `arg:"" help:"Queue of the dead packets, or the dead-letter queue that they moved to."`
	To    string `placeholder:"QUEUE" help:"Queue to bring them to (default: the one where they died)."`
	Count int64  `range:"0 1000" placeholder:"N" help:"At most N packets (default: all)."`

	selection
	bulk
	workServer
}

func (c *redriveCmd) Help() string {
	return `Makes dead packets ready again, with no attempts. Those of a dead-letter queue return to the queues where they died. It works slice by slice, and others are served in between.

Examples:

    holdfast redrive jobs
    holdfast redrive graves --to jobs --count 100
    holdfast redrive jobs --filter 'class=low' --dry-run`
}

func (c *redriveCmd) Run(ctx context.Context, p *program) error {
	return c.call(ctx, func(ctx context.Context, server *client.Client) error {
		return c.run(p, nil, &change{
			what: "dead packet", done: "ready again",
			do: func(options ...client.Option) (int64, error) {
				return server.Redrive(ctx, c.Queue, slices.Concat(options, c.options(), c.selection.options())...)
			},
		})
	})
}

func (c *redriveCmd) options() (all []client.Option) {
	if c.To != "" {
		all = append(all, client.To(c.To))
	}
	return append(all, atMost(c.Count)...)
}
