package pinpriq

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Client is one connection to a pinpriq server. Its methods may be called by several goroutines;
// a deadline or cancellation of a call's context while it waits for the server closes the
// connection, because there is no way to know afterwards which reply belongs to which call.
//
// On the wire a delivery to a subscriber looks like the reply of a pop. So a client that has
// subscribed uses Receive and does not Pop; open a second one for that.
type Client struct {
	conn net.Conn
	in   *bufio.Reader

	mu  sync.Mutex // held for a call's whole round trip
	buf []byte
	err error
}

// barrierQueue is the queue that Sync pops. Nothing is ever pushed to it by this client; its name
// begins with a zero byte so that no name typed by a person meets it.
const barrierQueue = "\x00holdfast.barrier"

// autoFlush is how much Push gathers before it sends.
const autoFlush = 32 << 10

// ErrBarrierUsed means that somebody has pushed to the queue which Sync pops, so that its reply
// was not empty. The packets in it are gone; the barrier held all the same.
var ErrBarrierUsed = errors.New("barrier queue was not empty: do not push to names that begin with a zero byte")

// Dial connects to a server.
func Dial(ctx context.Context, address string) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return NewClient(conn), nil
}

// NewClient makes a client of an open connection, which then belongs to the client.
func NewClient(conn net.Conn) *Client {
	return &Client{conn: conn, in: bufio.NewReaderSize(conn, 32<<10)}
}

// Close ends the connection. Pushes that were not followed by Sync may be lost.
func (c *Client) Close() error { return c.conn.Close() }

// PushOptions are what the protocol can say of a packet besides its bytes.
type PushOptions struct {
	Key      []byte
	Priority uint8         // 1 is best; 0 is never selected by itself
	TTL      time.Duration // 0 never expires; at most 65.535 s, in whole milliseconds
}

// Push queues a packet. It may be gathered with others; Flush sends it and Sync proves that it is
// on the server's disk. The protocol has no reply for it.
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
		return 0, fmt.Errorf("time to live %v: the protocol takes 0 (never expires) to %v", ttl, MaxTTL*time.Millisecond)
	}
	return uint16(ms), nil
}

// Flush sends what Push and the subscription calls have gathered.
func (c *Client) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flush()
}

// Sync returns when everything sent before it is carried out and on the server's disk (with the
// server's default of --sync=always). It is a pop of a queue that holds nothing.
func (c *Client) Sync(ctx context.Context) error {
	packets, err := c.Pop(ctx, barrierQueue)
	if err == nil && len(packets) > 0 {
		return ErrBarrierUsed
	}
	return err
}

// Pop takes the best packet of the queue, first in the result, and all that have its key. None
// means that the queue has nothing to select.
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

// Subscribe asks for the queue's packets, and Unsubscribe ends that. Each Ready allows one
// delivery from any subscribed queue. The calls are sent by the next Flush or Receive.
func (c *Client) Subscribe(queue string) error { return c.simple(OpSubscribe, queue) }

// Unsubscribe ends the subscription of the queue.
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
	packets, err := readReply(c.in)
	if err == nil {
		return packets, nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("server closed the connection, its log says why: %w", err)
	}
	return nil, c.fail(err)
}

// readReply reads a reply packet by packet, so that memory follows what arrives, not what was
// announced.
func readReply(in *bufio.Reader) ([]Packet, error) {
	var head [packetHeader]byte
	if _, err := io.ReadFull(in, head[:replyHeader]); err != nil {
		return nil, err
	}
	count := int(binary.BigEndian.Uint16(head[:]))
	packets := make([]Packet, 0, min(count, 64))
	for range count {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return nil, noEOF(err)
		}
		key, payload := int(binary.BigEndian.Uint16(head[:])), int(binary.BigEndian.Uint16(head[2:]))
		both := make([]byte, key+payload)
		if _, err := io.ReadFull(in, both); err != nil {
			return nil, noEOF(err)
		}
		packets = append(packets, Packet{Key: both[:key:key], Payload: both[key:]})
	}
	return packets, nil
}

// noEOF makes the end of the stream inside a reply an error of its own.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// fail ends the client: later calls get the same error.
func (c *Client) fail(err error) error {
	c.err = err
	_ = c.conn.Close()
	return err
}
