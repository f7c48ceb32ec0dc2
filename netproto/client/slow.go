package client

import (
	"context"
	"net"
	"os"
	"syscall"
	"time"
)

// slow is a connection that waits on while more of an answer comes: go-redis gives the whole of it
// the time of ReadTimeout, and packets of a Pop that takes longer would be lost.
type slow struct {
	net.Conn
	patience time.Duration // with each part of an answer
	deadline time.Time     // of the next part; zero if it does not move
}

// slowSocket is slow of a connection that go-redis asks whether it has ended meanwhile.
type slowSocket struct {
	*slow
	syscall.Conn
}

// dialer is how go-redis makes connections.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// waitsOn has the connections of a dialer be slow.
func waitsOn(dial dialer, patience time.Duration) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		s := &slow{Conn: conn, patience: patience}
		if socket, ok := conn.(syscall.Conn); ok {
			return slowSocket{s, socket}, nil
		}
		return s, nil
	}
}

func (c *slow) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if next := time.Now().Add(c.patience); n > 0 && !c.deadline.IsZero() && next.After(c.deadline) {
		_ = c.SetReadDeadline(next)
	}
	return n, err
}

// SetReadDeadline sets the time of the first part. One that is much shorter is that of a context,
// and stays.
func (c *slow) SetReadDeadline(t time.Time) error {
	c.deadline = time.Time{}
	if c.patience > 0 && time.Until(t) > c.patience/2 {
		c.deadline = t
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *slow) SetDeadline(t time.Time) error {
	c.deadline = time.Time{}
	return c.Conn.SetDeadline(t)
}

// within makes a call, and returns when the deadline of its context is over, though more of an
// answer may come. What ends by itself then has a moment to say how.
func within(ctx context.Context, call func() (any, error)) (any, error) {
	end, ok := ctx.Deadline()
	if !ok {
		return call()
	}
	ended := make(chan reply, 1)
	go func() { // ends with the answer, or when no more of it comes
		v, err := call()
		ended <- reply{v, err}
	}()
	over := time.NewTimer(time.Until(end) + 50*time.Millisecond)
	defer over.Stop()
	select {
	case r := <-ended:
		return r.value, r.err
	case <-over.C:
		return nil, os.ErrDeadlineExceeded
	}
}
