package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// printing is the flags of a command that prints packets.
type printing struct {
	Raw  bool `xor:"form" help:"Print payloads only, without newlines."`
	JSON bool `xor:"form" help:"Print a JSON object for each packet, one a line: selected, key, payload. Bytes that are not UTF-8 come as key_base64 and payload_base64."`
}

// packetJSON is the JSON form of a packet. One of each pair is set.
type packetJSON struct {
	Selected      bool    `json:"selected"` // false for packets that came along because of their key
	Key           *string `json:"key,omitempty"`
	KeyBase64     []byte  `json:"key_base64,omitempty"`
	Payload       *string `json:"payload,omitempty"`
	PayloadBase64 []byte  `json:"payload_base64,omitempty"`
}

// print writes what one pop or delivery brought, in one write.
func (p *printing) print(w io.Writer, packets []pinpriq.Packet) error {
	var out bytes.Buffer
	for i := range packets {
		if p.JSON {
			if err := printJSON(&out, &packets[i], i == 0); err != nil {
				return err
			}
			continue
		}
		out.Write(packets[i].Payload)
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

func printJSON(out *bytes.Buffer, p *pinpriq.Packet, selected bool) error {
	line := packetJSON{Selected: selected}
	line.Key, line.KeyBase64 = textOrBytes(p.Key)
	line.Payload, line.PayloadBase64 = textOrBytes(p.Payload)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		return fmt.Errorf("packet cannot be written as JSON: %w", err)
	}
	return nil
}

func textOrBytes(b []byte) (*string, []byte) {
	if !utf8.Valid(b) {
		return nil, b
	}
	s := string(b)
	return &s, nil
}
