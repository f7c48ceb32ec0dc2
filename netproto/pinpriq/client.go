package pinpriq

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Client is one connection to a pinpriq server. Several goroutines may call its methods. If a
// call's context ends while the call waits for the server, the connection is closed: nobody could
// tell which call the next reply belongs to.
//
// On the wire a delivery looks like the reply to a pop. So a client that has subscribed calls
// Receive and not Pop. Use a second client for that.
type Client struct {
	conn net.Conn
	in   *bufio.Reader

	mu  sync.Mutex // held for a call's whole round trip
	buf []byte
	err error
}

// barrierQueue is the queue that Sync pops and that must stay empty. Its name begins with a zero
// byte because no person types one.
const barrierQueue = "\x00holdfast.barrier"

// autoFlush is how many bytes of requests are gathered before they are sent.
const autoFlush = 32 << 10

// ErrBarrierUsed means that Sync popped packets that somebody had pushed to its queue. They are
// gone. What Sync proves holds all the same.
var ErrBarrierUsed = errors.New("the barrier queue was not empty: do not push to names that begin with a zero byte")

// NewClient makes a client of an open connection, which then belongs to it.
func NewClient(conn net.Conn) *Client {
	return &Client{conn: conn, in: bufio.NewReaderSize(conn, 32<<10)}
}

// Close ends the connection. Pushes without a later Sync or Pop may be lost.
func (c *Client) Close() error { return c.conn.Close() }

// PushOptions holds what the protocol says of a packet besides its payload.
type PushOptions struct {
	Key      []byte
	Priority uint8         // 1 is best; 0 is never selected
	TTL      time.Duration // 0 never expires; at most 65.535 s, in whole milliseconds
}

// Push queues a packet. The request may be gathered with others until Flush. The protocol has no
// reply to it: Sync proves that it is on the server's disk.
func (c *Client) Push(queue string, payload []byte, o PushOptions) error {
	ttl, err := wireTTL(o.TTL)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(&Request{
		Op: OpPush, Queue: []byte(queue), Priority: o.Priority, TTL: ttl,
		Packet: Packet{Key: o.Key, Payload: payload},
	})
}

func wireTTL(ttl time.Duration) (uint16, error) {
	ms := (ttl + time.Millisecond - 1).Milliseconds()
	if ms < 0 || ms > MaxTTL {
		return 0, fmt.Errorf("time to live %v: expected 0 (never expires) to %v", ttl, MaxTTL*time.Millisecond)
	}
	return uint16(ms), nil
}

// Flush sends the requests that were gathered.
func (c *Client) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flush()
}

// Sync returns when every earlier request is carried out and on the server's disk, unless the
// server was told to sync more rarely. It pops a queue that is always empty.
func (c *Client) Sync(ctx context.Context) error {
	packets, err := c.Pop(ctx, barrierQueue)
	if err == nil && len(packets) > 0 {
		return ErrBarrierUsed
	}
	return err
}

// Pop takes the best packet of the queue, first in the result, and all that have its key. It
// returns no packets if the queue has nothing to select.
func (c *Client) Pop(ctx context.Context, queue string) ([]Packet, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.add(&Request{Op: OpPop, Queue: []byte(queue)}); err != nil {
		return nil, err
	}
	if err := c.flush(); err != nil {
		return nil, err
	}
	return c.receive(ctx)
}

// Subscribe subscribes to the queue. Each Ready then allows one delivery from any subscribed queue.
// The requests may be gathered until Flush or Receive.
func (c *Client) Subscribe(queue string) error { return c.simple(OpSubscribe, queue) }

// Unsubscribe ends the subscription to the queue.
func (c *Client) Unsubscribe(queue string) error { return c.simple(OpUnsubscribe, queue) }

// Ready allows one more delivery.
func (c *Client) Ready() error { return c.simple(OpReady, "") }

func (c *Client) simple(op Op, queue string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(&Request{Op: op, Queue: []byte(queue)})
}

// Receive waits for one delivery.
func (c *Client) Receive(ctx context.Context) ([]Packet, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.flush(); err != nil {
		return nil, err
	}
	return c.receive(ctx)
}

func (c *Client) add(r *Request) error {
	if c.err != nil {
		return c.err
	}
	buf, err := r.Append(c.buf)
	if err != nil {
		return err
	}
	c.buf = buf
	if len(c.buf) >= autoFlush {
		return c.flush()
	}
	return nil
}

func (c *Client) flush() error {
	if c.err != nil || len(c.buf) == 0 {
		return c.err
	}
	if _, err := c.conn.Write(c.buf); err != nil {
		return c.fail(fmt.Errorf("send to server: %w", err))
	}
	c.buf = c.buf[:0]
	return nil
}

// receive reads one reply or delivery.
func (c *Client) receive(ctx context.Context) ([]Packet, error) {
	if c.err != nil {
		return nil, c.err
	}
	if err := ctx.Err(); err != nil {
		return nil, c.fail(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	packets, err := ReadReply(c.in)
	if err == nil {
		return packets, nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the server closed the connection; its log says why: %w", err)
	}
	return nil, c.fail(err)
}

// fail ends the client: later calls get the same error.
func (c *Client) fail(err error) error {
	c.err = err
	_ = c.conn.Close()
	return err
}
