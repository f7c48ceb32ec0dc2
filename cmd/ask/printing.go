package ask

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/netproto/words"
	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

// packetJSON is a packet as JSON. Its names are the protocol's, with _ for -.
func packetJSON(p *client.Packet) *terminal.JSON {
	o := new(terminal.JSON)
	for i, v := range p.Fields() {
		name := strings.ReplaceAll(words.PacketFields[i].Name, "-", "_")
		switch v := v.(type) {
		case []byte:
			o.Bytes(name, v)
		case string:
			o.Text(name, v)
		case time.Time:
			o.Moment(name, v)
		case time.Duration:
			o.Add(name, v.Milliseconds())
		case map[string]string:
			o.Add(name, tagPairs(v))
		default:
			o.Add(name, v)
		}
	}
	return o
}

func tagPairs(tags map[string]string) (all jsonbytes.Pairs) {
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, jsonbytes.Bytes(name), jsonbytes.Bytes(tags[name]))
	}
	return all
}

// printer takes the packets that a command lists.
type printer interface {
	print(p *client.Packet) error // perhaps it prints nothing before end
	end() error
}

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
		return packetJSON(p).Print(o.w)
	}
	if o.rows == 0 {
		o.table.Row("ID", "STATE", "PRIORITY", "ATTEMPT", "AGE", "KEY", "TAGS", "PAYLOAD", "NOTE")
	}
	o.rows++
	o.table.Row(p.ID, string(p.State), strconv.FormatUint(uint64(p.Priority), 10), strconv.Itoa(p.Attempt), ageOf(p, o.now),
		keyCell(p), tagsCell(p.Tags), terminal.Cell(string(p.Payload)), note(p, o.now))
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
	return terminal.Cell(string(p.Key))
}

func tagsCell(tags map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, name+"="+tags[name])
	}
	return terminal.Optional(strings.Join(all, ","))
}

// note says what matters most in the state of a packet.
func note(p *client.Packet, now time.Time) string {
	switch p.State {
	case client.StateDelayed:
		return "ready in " + terminal.Span(p.NotBefore.Sub(now))
	case client.StateClaimed:
		text := fmt.Sprintf("%s, %s left", terminal.Cell(p.Consumer), terminal.Span(p.LeaseEnd.Sub(now)))
		if p.Percent >= 0 {
			text += fmt.Sprintf(", %d %%", p.Percent)
		}
		if p.Cancelled {
			text += ", cancelled"
		}
		return text
	case client.StateDone:
		return "gone in " + terminal.Span(p.Expires.Sub(now))
	}
	if p.Reason != "" {
		return terminal.Cell(p.Reason)
	}
	if !p.Expires.IsZero() {
		return "expires in " + terminal.Span(p.Expires.Sub(now))
	}
	return ""
}

// printing is the flags of a command that prints packets that it has taken.
type printing struct {
	Raw  bool `xor:"form" help:"Print payloads only, without newlines. On a terminal, what it would obey is quoted all the same."`
	JSON bool `xor:"form" help:"Print a JSON object for each packet, one a line: id, queue, payload, what else is known, and selected. Bytes that are not UTF-8 are {\"base64\":\"...\"}."`
}

// print writes what one pop or delivery brought, in one write. Of a group only the first packet was
// selected.
func (p *printing) print(w io.Writer, packets []*client.Packet, group bool) error {
	var out bytes.Buffer
	for i, packet := range packets {
		if p.JSON {
			o := packetJSON(packet)
			o.Add("selected", i == 0 || !group)
			out.Write(o.Line())
			continue
		}
		out.Write(terminal.PayloadFor(w, packet.Payload))
		if !p.Raw {
			out.WriteByte('\n')
		}
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		// Not wrapped: the packets are lost, which must be said even if only the reader went away.
		return fmt.Errorf("print %s, gone from the queue: %v", terminal.Plural(len(packets), "packet"), err)
	}
	return nil
}
