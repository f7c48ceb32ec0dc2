package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// pushCmd pushes one packet.
type pushCmd struct {
	Queue    string        `arg:"" help:"Queue to push to. The first push makes it."`
	Payload  string        `arg:"" default:"-" help:"Payload, at most 65535 bytes. If it is - or missing, standard input is read."`
	Key      *string       `placeholder:"KEY" help:"Key of the packet (default: a random one). A pop takes the selected packet and all others of the queue with its key. An empty KEY is a key like any other."`
	Priority int           `default:"128" placeholder:"N" help:"Priority: 1 is best, 255 last. A packet of priority 0 is never selected: it leaves with a selected packet of its key, or when its TTL ends (default ${default})."`
	TTL      time.Duration `default:"0s" placeholder:"TIME" help:"Time to live, at most 65.535s; 0 never expires (default ${default})."`

	server
}

// Help is shown below the usage line.
func (c *pushCmd) Help() string {
	return `Returns with exit code 0 once the packet is on the server's disk. (A server with --sync other than always answers before that.)

Examples:

    holdfast push jobs hello
    holdfast push jobs "rotate logs" --priority 1 --ttl 30s
    holdfast push jobs --key order-17 < order.json
    printf 'no newline' | holdfast push jobs -
    holdfast push jobs -- -begins-with-a-dash`
}

// Validate is called with the parsed flags.
func (c *pushCmd) Validate() error {
	if err := checkRange("--priority", int64(c.Priority), 0, math.MaxUint8); err != nil {
		return err
	}
	if longest := pinpriq.MaxTTL * time.Millisecond; c.TTL < 0 || c.TTL > longest {
		return fmt.Errorf("--ttl %v: expected 0 (never expires) to %v", c.TTL, longest)
	}
	return c.server.Validate()
}

// Run pushes, and returns nil once the packet is on disk.
func (c *pushCmd) Run(ctx context.Context, p *program) error {
	payload, err := c.payload(p.stdin)
	if err != nil {
		return err
	}
	return c.call(ctx, func(ctx context.Context, client *pinpriq.Client) error {
		options := pinpriq.PushOptions{Key: c.key(), Priority: uint8(c.Priority), TTL: c.TTL}
		if err := client.Push(c.Queue, payload, options); err != nil {
			return err
		}
		return client.Sync(ctx)
	})
}

func (c *pushCmd) payload(stdin io.Reader) ([]byte, error) {
	if c.Payload != "-" {
		return []byte(c.Payload), nil
	}
	payload, err := io.ReadAll(io.LimitReader(stdin, pinpriq.MaxPayload+1))
	if err != nil {
		return nil, fmt.Errorf("read the payload from standard input: %w", err)
	}
	if len(payload) > pinpriq.MaxPayload {
		return nil, errors.New("standard input is too long for one packet: the protocol's limit is 65535 bytes of payload")
	}
	return payload, nil
}

// key is the packet's key. The protocol has no packet without one: a random one stands for it.
func (c *pushCmd) key() []byte {
	if c.Key != nil {
		return []byte(*c.Key)
	}
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	return key
}
