package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// printing is the flags of a command that prints packets that it has taken.
type printing struct {
	Raw  bool `xor:"form" help:"Print payloads only, without newlines."`
	JSON bool `xor:"form" help:"Print a JSON object for each packet, one a line: selected, key, payload and what else is known. Bytes that are not UTF-8 come as key_base64 and payload_base64."`
}

// taken is a packet to print.
type taken struct {
	key, payload []byte
	more         *client.Packet // nil over pinpriq, whose packets have no more
}

func takenByPinpriq(packets []pinpriq.Packet) []taken {
	all := make([]taken, len(packets))
	for i := range packets {
		all[i] = taken{key: packets[i].Key, payload: packets[i].Payload}
	}
	return all
}

func takenByPop(packets []*client.Packet) []taken {
	all := make([]taken, len(packets))
	for i, p := range packets {
		all[i] = taken{p.Key, p.Payload, p}
	}
	return all
}

// print writes what one pop or delivery brought, in one write.
func (p *printing) print(w io.Writer, packets []taken) error {
	var out bytes.Buffer
	for i := range packets {
		if p.JSON {
			out.Write(packets[i].json(i == 0))
			continue
		}
		out.Write(packets[i].payload)
		if !p.Raw {
			out.WriteByte('\n')
		}
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		// Not wrapped: the packets are lost, which must be said even if only the reader went away.
		return fmt.Errorf("print %s, gone from the queue: %v", plural(len(packets), "packet"), err)
	}
	return nil
}

// json is the packet as a line of JSON. It was selected, or it came along because of its key.
func (t *taken) json(selected bool) []byte {
	var o jsonObject
	o.add("selected", selected)
	if t.key != nil {
		o.bytes("key", t.key)
	}
	o.bytes("payload", t.payload)
	if t.more != nil {
		addPacket(&o, t.more)
	}
	return o.line()
}
