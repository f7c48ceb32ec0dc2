package client

import (
	"encoding/json"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// Codec turns values into payloads and back. Producers and workers of a queue use the same one.
type Codec interface {
	// Marshal returns the payload of a value.
	Marshal(value any) ([]byte, error)
	// Unmarshal reads a payload into what value points to.
	Unmarshal(payload []byte, value any) error
}

// The codecs. Raw takes []byte and string, and gives to *[]byte and *string, as they are.
var (
	JSON    Codec = codec{json.Marshal, json.Unmarshal}
	MsgPack Codec = codec{msgpack.Marshal, msgpack.Unmarshal}
	Raw     Codec = codec{marshalRaw, unmarshalRaw}
)

type codec struct {
	marshal   func(value any) ([]byte, error)
	unmarshal func(payload []byte, value any) error
}

func (c codec) Marshal(value any) ([]byte, error)         { return c.marshal(value) }
func (c codec) Unmarshal(payload []byte, value any) error { return c.unmarshal(payload, value) }

func marshalRaw(value any) ([]byte, error) {
	switch v := value.(type) {
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	return nil, fmt.Errorf("expected bytes or a string, got %T", value)
}

func unmarshalRaw(payload []byte, value any) error {
	switch v := value.(type) {
	case *[]byte:
		*v = payload
		return nil
	case *string:
		*v = string(payload)
		return nil
	}
	return fmt.Errorf("expected a place for bytes or a string, got %T", value)
}
