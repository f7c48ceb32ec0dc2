package ask

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// Peek shows what comes next.
type Peek struct {
	Queue string `arg:"" predictor:"queue" help:"Queue to look at."`
	Count int64  `default:"10" range:"1 1000" placeholder:"N" help:"At most N packets (default ${default})."`

	packetsForm
	asking
}

func (c *Peek) Help() string {
	return `Prints the packets that would be taken next, in order, and takes none. If there is none, nothing is printed and the exit code is 3.

Examples:

    holdfast peek jobs
    holdfast peek jobs --count 1 --json`
}

func (c *Peek) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	packets, err := server.Peek(ctx, c.Queue, int(c.Count))
	switch {
	case err != nil:
		return err
	case len(packets) == 0:
		return fmt.Errorf("queue %.80q has %w to take", c.Queue, ErrNothing)
	}
	out := c.printer(p.Stdout)
	for _, packet := range packets {
		if err := out.print(packet); err != nil {
			return err
		}
	}
	return out.end()
}

// List lists the packets of a queue.
type List struct {
	Queue string `arg:"" predictor:"queue" help:"Queue to look at."`
	State string `enum:",ready,delayed,claimed,dead,done,damaged" default:"" placeholder:"STATE" help:"Only packets in this state: ready, delayed, claimed, dead, done or damaged (default: all)."`
	Count int64  `xor:"count" range:"1" placeholder:"N" help:"At most N packets (default: all)."`
	All   bool   `xor:"count" help:"All packets, as without --count."`

	ByError bool `help:"Count the packets by their last error, instead of listing them."`

	selection
	packetsForm
	asking
}

func (c *List) Help() string {
	return `Prints the packets of a queue, state by state, page by page: what changes meanwhile may be seen or not. If there is no such queue, the exit code is 3.

Examples:

    holdfast list jobs
    holdfast list jobs --state dead --count 20
    holdfast list jobs --state dead --by-error
    holdfast list tasks --filter 'class=low' --json | jq .id`
}

func (c *List) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	o := p.Long()
	var out printer = c.printer(o)
	if c.ByError {
		out = &errorCounts{w: o, json: c.JSON, all: make(map[string]*errorCount)}
	}
	options := slices.Concat(inState(c.State), c.selection.options())
	n := int64(0)
	for packet, err := range server.List(ctx, c.Queue, options...) {
		if err != nil {
			return err
		}
		if err := out.print(packet); err != nil {
			return err
		}
		if n++; n == c.Count {
			break
		}
	}
	if n == 0 { // a queue that does not exist has no packets either
		if _, err := server.Stats(ctx, c.Queue); err != nil {
			return err
		}
	}
	return cmp.Or(out.end(), o.Keep())
}

// Show shows one packet.
type Show struct {
	Queue string `arg:"" predictor:"queue" help:"Queue of the packet."`
	ID    string `arg:"" help:"Id of the packet."`
	Raw   bool   `xor:"form" help:"Print the payload only, without a newline."`
	JSON  bool   `xor:"form" help:"Print a JSON object. Times are Unix milliseconds. Bytes that are not UTF-8 are {\"base64\":\"...\"}."`

	asking
}

func (c *Show) Help() string {
	return `Prints all that is known of a packet, and why it is not delivered now. If the queue does not have it, the exit code is 3.

Examples:

    holdfast show jobs 17
    holdfast show jobs 17 --raw > payload.bin`
}

func (c *Show) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	packet, err := server.Show(ctx, c.Queue, c.ID)
	switch {
	case err != nil:
		return err
	case c.Raw:
		_, err = p.Stdout.Write(terminal.PayloadFor(p.Stdout, packet.Payload))
	case c.JSON:
		err = packetJSON(packet).Print(p.Stdout)
	default:
		err = describe(p.Stdout, packet, time.Now())
	}
	return err
}

// describe writes the fields of a packet, a line each.
func describe(w io.Writer, p *client.Packet, now time.Time) error {
	t := terminal.NewTable(w)
	for i, v := range p.Fields() {
		f, value := words.PacketFields[i], ""
		switch v := v.(type) {
		case []byte:
			value = terminal.Cell(string(v))
		case string:
			value = terminal.Optional(v)
		case int64:
			if value = terminal.Decimal(v); f.Kind == words.Percent {
				value += " %"
			}
		case time.Time:
			value = terminal.Moment(v, now)
		case time.Duration:
			value = terminal.Span(v)
		case map[string]string:
			value = tagsCell(v)
		case bool:
			value = "yes"
		}
		if f.Name == "payload" {
			value += fmt.Sprintf(" (%s)", terminal.Approximate(int64(len(p.Payload))))
		}
		if value != "" {
			t.Row(strings.ReplaceAll(f.Name, "-", " "), value)
		}
	}
	return t.Flush()
}

// Prio changes the priority of a packet.
type Prio struct {
	Queue    string `arg:"" predictor:"queue" help:"Queue of the packet."`
	ID       string `arg:"" help:"Id of the packet."`
	Priority int64  `arg:"" range:"0 4294967295" help:"New priority: 1 is best. 0 is for a packet with a key: it leaves only with another one of its key."`

	asking
}

func (c *Prio) Help() string {
	return `Changes the priority of a packet in any state. It keeps its id and its age. If the queue does not have it, the exit code is 3.

Example:

    holdfast prio jobs 17 1`
}

func (c *Prio) Ask(ctx context.Context, _ *terminal.Process, server *client.Client) error {
	return server.SetPriority(ctx, c.Queue, c.ID, uint32(c.Priority))
}

// RunNow has a packet that waits be ready.
type RunNow struct {
	Queue string        `arg:"" predictor:"queue" help:"Queue of the packet."`
	ID    string        `arg:"" help:"Id of the packet."`
	Delay time.Duration `xor:"when" placeholder:"TIME" help:"How long it waits from now on."`
	At    time.Time     `xor:"when" placeholder:"TIME" help:"When it is ready, such as 2026-12-01T08:00, which is local time, 2026-12-01T08:00Z or 2026-12-01T08:00+02:00."`

	asking
}

func (c *RunNow) Help() string {
	return `A packet that is delayed is ready now, or at another time. One that is ready can be delayed. It keeps its priority and its age. "holdfast redrive" is for dead packets. If the queue has no such packet that waits, the exit code is 3.

Examples:

    holdfast run jobs 17
    holdfast run jobs 17 --delay 10m`
}

func (c *RunNow) Ask(ctx context.Context, _ *terminal.Process, server *client.Client) error {
	if c.Delay > 0 {
		return server.RescheduleIn(ctx, c.Queue, c.ID, c.Delay)
	}
	return server.Reschedule(ctx, c.Queue, c.ID, c.At)
}
