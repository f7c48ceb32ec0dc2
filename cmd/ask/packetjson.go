package ask

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/netproto/words"
	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

// packetJSON is a packet in a line.
func packetJSON(p *client.Packet) []byte { return packetAfter(new(terminal.JSON), p) }

// packetAfter adds a packet, which ends the line. Its names are the protocol's, with _ for -.
func packetAfter(o *terminal.JSON, p *client.Packet) []byte {
	for i, v := range p.Fields() {
		name := strings.ReplaceAll(words.PacketFields[i].Name, "-", "_")
		switch v := v.(type) {
		case []byte:
			o.Bytes(name, v)
		case string:
			o.Text(name, v)
		case time.Time:
			o.Moment(name, v)
		case map[string]string:
			o.Add(name, tagPairs(v))
		default:
			o.Add(name, v)
		}
	}
	return o.Line()
}

func tagPairs(tags map[string]string) (all jsonbytes.Pairs) {
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, jsonbytes.Bytes(name), jsonbytes.Bytes(tags[name]))
	}
	return all
}
