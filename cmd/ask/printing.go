package ask

import (
	"bytes"
	"fmt"
	"io"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// printing is the flags of a command that prints packets that it has taken.
type printing struct {
	Raw  bool `xor:"form" help:"Print payloads only, without newlines. On a terminal, what it would obey is quoted all the same."`
	JSON bool `xor:"form" help:"Print a JSON object for each packet, one a line: selected, key, payload and what else is known. Bytes that are not UTF-8 are {\"base64\":\"...\"}."`
}

// print writes what one pop or delivery brought, in one write. Of a group only the first packet was
// selected.
func (p *printing) print(w io.Writer, packets []*client.Packet, group bool) error {
	var out bytes.Buffer
	for i, packet := range packets {
		if p.JSON {
			var o terminal.JSON
			o.Add("selected", i == 0 || !group)
			out.Write(packetAfter(&o, packet))
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
