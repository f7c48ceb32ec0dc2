package ask

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// packetsForm is the flag of a command that lists packets and takes none.
type packetsForm struct {
	JSON bool `help:"Print a JSON object for each packet, one a line. Times are Unix milliseconds. Bytes that are not UTF-8 are {\"base64\":\"...\"}."`
}

// packetPrinter prints packets that stay where they are.
type packetPrinter struct {
	w     io.Writer
	json  bool
	now   time.Time
	table *terminal.Table
	rows  int
}

// alignedRows is how many rows are aligned with each other: more could not be held.
const alignedRows = 1000

func (f *packetsForm) printer(w io.Writer) *packetPrinter {
	return &packetPrinter{w: w, json: f.JSON, now: time.Now(), table: terminal.NewTable(w, "KEY", "TAGS", "PAYLOAD", "NOTE")}
}

// print prints a packet, perhaps not before the next ones or end.
func (o *packetPrinter) print(p *client.Packet) error {
	if o.json {
		_, err := o.w.Write(packetJSON(p))
		return err
	}
	if o.rows == 0 {
		o.table.Row("ID", "STATE", "PRIORITY", "ATTEMPT", "AGE", "KEY", "TAGS", "PAYLOAD", "NOTE")
	}
	o.rows++
	o.table.Row(p.ID, string(p.State), strconv.FormatUint(uint64(p.Priority), 10), strconv.Itoa(p.Attempt), ageOf(p, o.now),
		keyCell(p), tagsCell(p.Tags), terminal.Cell(string(p.Payload), terminal.LongCell), note(p, o.now))
	if o.rows%alignedRows == 0 {
		return o.table.Flush()
	}
	return nil
}

func (o *packetPrinter) end() error { return o.table.Flush() }

func ageOf(p *client.Packet, now time.Time) string {
	if p.Enqueued.IsZero() {
		return ""
	}
	return terminal.Span(now.Sub(p.Enqueued))
}

func keyCell(p *client.Packet) string {
	if p.Key == nil {
		return ""
	}
	return terminal.Cell(string(p.Key), terminal.LongCell)
}

func tagsCell(tags map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, name+"="+tags[name])
	}
	return terminal.Optional(strings.Join(all, ","), terminal.LongCell)
}

// note says what matters most in the state of a packet.
func note(p *client.Packet, now time.Time) string {
	switch p.State {
	case client.StateDelayed:
		return "ready in " + terminal.Span(p.NotBefore.Sub(now))
	case client.StateClaimed:
		text := fmt.Sprintf("%s, %s left", terminal.Cell(p.Consumer, terminal.LongCell), terminal.Span(p.LeaseEnd.Sub(now)))
		if p.Percent >= 0 {
			text += fmt.Sprintf(", %d %%", p.Percent)
		}
		return text
	case client.StateDone:
		return "gone in " + terminal.Span(p.Expires.Sub(now))
	}
	if p.Reason != "" {
		return terminal.Cell(p.Reason, terminal.LongCell)
	}
	if !p.Expires.IsZero() {
		return "expires in " + terminal.Span(p.Expires.Sub(now))
	}
	return ""
}
