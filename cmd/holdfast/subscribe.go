package main

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// subscribeCmd prints deliveries.
type subscribeCmd struct {
	Queues []string `arg:"" name:"queue" help:"Queues to subscribe to. They need not exist yet."`
	Count  int      `placeholder:"N" help:"End after N deliveries; packets of one key come as one delivery. 0 goes on until a signal (default 0)."`

	printing
	server
}

func (c *subscribeCmd) Help() string {
	return `Prints each delivery before it asks for the next, so a slow reader loses nothing. Of several queues, the packet with the best priority comes first, then the newest.

Examples:

    holdfast subscribe jobs
    holdfast subscribe urgent jobs --count 1
    holdfast subscribe events --json`
}

// Run prints deliveries until there were Count of them or ctx ends. Both are a normal end.
func (c *subscribeCmd) Run(ctx context.Context, p *program) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	client := pinpriq.NewClient(conn)
	defer client.Close()
	for _, queue := range c.Queues {
		if err := client.Subscribe(queue); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { leave(conn, c.Timeout) })
	defer stop()
	for n := 0; c.Count == 0 || n < c.Count; n++ {
		if err := client.Ready(); err != nil {
			return err
		}
		packets, err := client.Receive(context.WithoutCancel(ctx))
		if ctx.Err() != nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE)) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.print(p.stdout, takenByPinpriq(packets)); err != nil {
			return err
		}
	}
	return nil
}

// leave tells the server that this client asks for nothing more. The server sends what it has
// delivered and closes, so a delivery on its way is printed and not lost.
func leave(conn *net.TCPConn, timeout time.Duration) {
	_ = conn.SetReadDeadline(time.Now().Add(timeout))
	_ = conn.CloseWrite()
}
