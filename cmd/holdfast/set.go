package main

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// setCmd changes settings.
type setCmd struct {
	Queue    string   `arg:"" help:"Queue to set. It is made if there is none."`
	Settings []string `arg:"" name:"name=value" help:"Settings, such as lease=1m, bound-bytes=64MiB or enum.class=low,standard,high."`

	workServer
}

// Help is shown below the usage line.
func (c *setCmd) Help() string {
	return `Times are written as 30s, sizes as 64MiB. The order of the values of a tag is declared by enum.TAG, from the lowest to the highest; an empty one ends it. With more than one of those, the settings go to the server in as many steps.

    max-attempts         claims after which a packet is dead
    lease                how long a claim lasts
    backoff-min/max      when a failed packet is tried again
    dead-letter          queue for the dead
    retain               how long an acknowledged packet stays, as done
    bound, bound-bytes   how much the queue holds
    full                 what a full queue does with a push: reject, block or drop
    exclusive-producer   whether one client alone may push
    exclusive-consumer   whether one client alone may take
    pause-in, pause-out  whether pushes or takes wait
    enum.TAG             order of the values of a tag

Examples:

    holdfast set jobs max-attempts=3 lease=5m dead-letter=graves
    holdfast set jobs bound=10000 bound-bytes=64MiB full=block
    holdfast set tasks enum.performance_class=low,standard,performance,high_performance`
}

// Validate is called with the parsed flags.
func (c *setCmd) Validate() error {
	_, err := c.calls()
	return cmp.Or(checkPairs("<name=value>", c.Settings), err, c.workServer.Validate())
}

// Run changes the settings.
func (c *setCmd) Run(ctx context.Context) error {
	calls, err := c.calls()
	if err != nil {
		return err
	}
	return c.call(ctx, func(ctx context.Context, server *client.Client) error {
		for _, settings := range calls {
			if err := server.Set(ctx, c.Queue, settings...); err != nil {
				return err
			}
		}
		return nil
	})
}

// calls are the settings as the protocol takes them. An enum ends the arguments of a call, so each
// further one is a call of its own.
func (c *setCmd) calls() (calls [][]string, err error) {
	var plain []string
	for _, pair := range c.Settings {
		name, value, _ := strings.Cut(pair, "=")
		if tag, ok := strings.CutPrefix(name, enumPrefix); ok {
			calls = append(calls, append([]string{"enum", tag}, strings.Split(value, ",")...))
			continue
		}
		switch name { // the server explains these in words of its protocol
		case "enum":
			return nil, errors.New("enum: expected the tag in the name, such as enum.TAG=low,high")
		case "closed":
			return nil, errors.New(`closed: "holdfast close" closes a queue, for ever`)
		}
		if value, err = parseSetting(name, value); err != nil {
			return nil, err
		}
		plain = append(plain, name, value)
	}
	if len(calls) == 0 {
		return [][]string{plain}, nil
	}
	calls[0] = append(plain, calls[0]...)
	return calls, nil
}
