package client

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// turn is the longest wait that one request asks for. A longer one is made of turns, so that a
// server that is cut off is noticed.
const turn = 30 * time.Second

// waiter sends requests that wait in the server, over a connection of its own.
type waiter struct {
	c    *Client
	conn *redis.Conn // nil before the first request, and after an error
	id   int64       // of the connection
}

// ask sends a request with BLOCK, turn by turn, until the answer is not the null that ends a turn,
// or the time is over. A time of 0 has no end.
func (w *waiter) ask(ctx context.Context, d time.Duration, args []any) (any, error) {
	begin := time.Now()
	for {
		rest := turn
		if d > 0 {
			rest = min(rest, max(time.Millisecond, d-time.Since(begin)))
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, err := w.take(ctx, append(args[:len(args):len(args)], "BLOCK", milliseconds(rest)))
		if !isNull(err) || d > 0 && time.Since(begin) >= d {
			return v, err
		}
	}
}

// take sends one request. If ctx ends, the server is told to end the wait: so the reply always says
// what was done.
func (w *waiter) take(ctx context.Context, args []any) (any, error) {
	if w.conn == nil {
		conn := w.c.waiting.Conn()
		id, err := conn.ClientID(ctx).Result()
		if err != nil {
			_ = conn.Close()
			return nil, refusal(err)
		}
		w.conn, w.id = conn, id
	}
	answered := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { w.c.unblock(w.id, answered) })
	v, err := doOnce(context.WithoutCancel(ctx), w.conn, args)
	close(answered)
	stop()
	if err != nil && !isReply(err) {
		w.close()
	}
	return v, err
}

// close returns the connection to the pool.
func (w *waiter) close() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

// unblock ends the wait of a connection. The server may not have the request yet, so it is told
// until there is an answer. One time too many ends another wait on that connection early, and that
// begins again.
func (c *Client) unblock(id int64, answered <-chan struct{}) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		c.rdb.ClientUnblock(context.Background(), id)
		select {
		case <-answered:
			return
		case <-again.C:
		}
	}
}
