package ask

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Claim claims packets.
type Claim struct {
	Queues   []string       `arg:"" predictor:"queue" name:"queue" help:"Queues to claim from: the first that has a packet."`
	Count    int64          `range:"0 1000" placeholder:"N" help:"Claim up to N packets (default: one)."`
	Lease    time.Duration  `placeholder:"TIME" help:"How long the claim lasts (default: what the queue says)."`
	Consumer string         `placeholder:"NAME" help:"Name of who claims, which list and show print (default: a name of this process)."`
	Block    *time.Duration `placeholder:"TIME" help:"How long to wait for a packet; 0s waits without end (default: do not wait)."`
	Newest   bool           `help:"Claim the newest packet of the best priority (default: the oldest)."`
	Group    bool           `help:"Claim with a packet all others of its key."`

	selection
	packetsForm
	asking
}

func (c *Claim) Help() string {
	return `Prints the packets with their ids and tokens. Each goes to another consumer when its lease ends, unless "holdfast ack" or "holdfast nack" comes before. If the queues have nothing to claim, nothing is printed and the exit code is 3, or 1 if they are closed as well.

Examples:

    holdfast claim jobs
    holdfast claim urgent jobs --lease 5m --block 10s --json
    holdfast claim tasks --filter 'performance_class<=high' --consumer node-7`
}

func (c *Claim) Validate() error {
	if c.Group && c.Count > 0 {
		return fmt.Errorf("--group and --count: expected one of them")
	}
	return c.selection.Validate()
}

func (c *Claim) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	packets, err := server.Claim(ctx, c.Queues[0], c.options()...)
	switch {
	case err != nil:
		return err
	case len(packets) == 0:
		return c.nothing()
	}
	return c.print(p.Stdout, packets)
}

// nothing is the error that says so.
func (c *Claim) nothing() error {
	if len(c.Queues) == 1 {
		return fmt.Errorf("queue %.80q has %w to claim", c.Queues[0], ErrNothing)
	}
	return fmt.Errorf("the %d queues have %w to claim", len(c.Queues), ErrNothing)
}

func (c *Claim) options() []client.Option {
	all := append(append(c.selection.options(), client.Or(c.Queues[1:]...)), atMost(c.Count)...)
	if c.Lease > 0 {
		all = append(all, client.Lease(c.Lease))
	}
	if c.Consumer != "" {
		all = append(all, client.As(c.Consumer))
	}
	if c.Block != nil {
		all = append(all, client.Block(*c.Block))
	}
	if c.Newest {
		all = append(all, client.Newest())
	}
	if c.Group {
		all = append(all, client.Group())
	}
	return all
}

// print writes the packets with what an answer needs first.
func (c *Claim) print(w io.Writer, packets []*client.Packet) error {
	t, now := terminal.NewTable(w, "QUEUE", "KEY", "TAGS", "PAYLOAD"), time.Now()
	if !c.JSON {
		t.Row("QUEUE", "ID", "TOKEN", "ATTEMPT", "LEFT", "KEY", "TAGS", "PAYLOAD")
	}
	for _, p := range packets {
		if c.JSON {
			if _, err := w.Write(packetJSON(p)); err != nil {
				return err
			}
			continue
		}
		t.Row(terminal.Cell(p.Queue, terminal.LongCell), p.ID, strconv.FormatInt(p.Token, 10), strconv.Itoa(p.Attempt), terminal.Span(p.LeaseEnd.Sub(now)),
			keyCell(p), tagsCell(p.Tags), terminal.Cell(string(p.Payload), terminal.LongCell))
	}
	return t.Flush()
}
