package ask

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

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
		_, err = p.Stdout.Write(packetJSON(packet))
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
			value = terminal.Cell(string(v), terminal.LongCell)
		case string:
			value = terminal.Optional(v, terminal.LongCell)
		case int64:
			if value = terminal.Decimal(v); f.Kind == words.Percent {
				value += " %"
			}
		case time.Time:
			value = terminal.Moment(v, now)
		case map[string]string:
			value = tagsCell(v)
		}
		if i == words.PacketPayload {
			value += fmt.Sprintf(" (%s)", terminal.Approximate(int64(len(p.Payload))))
		}
		if value != "" {
			t.Row(strings.ReplaceAll(f.Name, "-", " "), value)
		}
	}
	return t.Flush()
}
