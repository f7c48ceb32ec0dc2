package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// showCmd shows one packet.
type showCmd struct {
	Queue string `arg:"" predictor:"queue" help:"Queue of the packet."`
	ID    string `arg:"" help:"Id of the packet."`
	Raw   bool   `xor:"form" help:"Print the payload only, without a newline."`
	JSON  bool   `xor:"form" help:"Print a JSON object. Times are Unix milliseconds. Bytes that are not UTF-8 are {\"base64\":\"...\"}."`

	workServer
}

func (c *showCmd) Help() string {
	return `Prints all that is known of a packet, and why it is not delivered now. If the queue does not have it, the exit code is 3.

Examples:

    holdfast show jobs 17
    holdfast show jobs 17 --raw > payload.bin`
}

func (c *showCmd) Run(ctx context.Context, p *program) error {
	return c.call(ctx, func(ctx context.Context, server *client.Client) error {
		packet, err := server.Show(ctx, c.Queue, c.ID)
		switch {
		case err != nil:
			return err
		case c.Raw:
			_, err = p.stdout.Write(payloadFor(p.stdout, packet.Payload))
		case c.JSON:
			_, err = p.stdout.Write(packetJSON(packet))
		default:
			err = describe(p.stdout, packet, time.Now())
		}
		return err
	})
}

// describe writes the fields of a packet, a line each.
func describe(w io.Writer, p *client.Packet, now time.Time) error {
	t := newTable(w)
	line := func(name, value string) {
		if value != "" {
			t.row(name, value)
		}
	}
	line("id", p.ID)
	line("queue", cell(p.Queue, longCell))
	line("state", string(p.State))
	line("why", optional(p.Why, longCell))
	line("priority", strconv.FormatUint(uint64(p.Priority), 10))
	line("attempt", strconv.Itoa(p.Attempt))
	line("key", keyCell(p))
	line("tags", tagsCell(p.Tags))
	line("unique", optional(p.Unique, longCell))
	line("producer", optional(p.Producer, longCell))
	line("enqueued", moment(p.Enqueued, now))
	line("expires", moment(p.Expires, now))
	line("not before", moment(p.NotBefore, now))
	line("consumer", optional(p.Consumer, longCell))
	if p.Token != 0 {
		line("token", strconv.FormatInt(p.Token, 10))
	}
	line("first claim", moment(p.FirstClaim, now))
	line("last claim", moment(p.LastClaim, now))
	line("lease end", moment(p.LeaseEnd, now))
	if p.Percent >= 0 {
		line("progress", fmt.Sprintf("%d %% %s", p.Percent, optional(p.PercentText, longCell)))
	}
	line("reason", optional(p.Reason, longCell))
	line("origin", optional(p.Origin, longCell))
	line("payload", fmt.Sprintf("%s (%s)", cell(string(p.Payload), longCell), approximate(int64(len(p.Payload)))))
	return t.Flush()
}
