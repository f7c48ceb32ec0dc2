package client

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// The longest wait that one request asks for. A longer one is made of turns, so that a server that
// is cut off is noticed. A push has a long turn, as it goes to the end of the line with each one.
const (
	takeTurn = 30 * time.Second
	pushTurn = 10 * time.Minute
)

// waiter sends requests that wait in the server, over a connection of its own.
type waiter struct {
	c        *Client
	turn     time.Duration
	fill     time.Duration // how long an answer may take besides, see Fill
	requests chan []any    // nil before the first one, and after an error; its end closes the connection
	replies  chan reply
	pool     *redis.Client // of the connection alone
	id       int64         // of the connection

	asked time.Time // when the last request was sent
}

// ask sends a request with BLOCK, turn by turn, until the answer is not the null that ends a turn,
// or the time is over. A time of 0 has no end.
func (w *waiter) ask(ctx context.Context, d time.Duration, args []any) (any, error) {
	begin := time.Now()
	for {
		rest := w.turn
		if d > 0 {
			rest = min(rest, max(time.Millisecond, d-time.Since(begin)))
		}
		v, err := w.send(ctx, append(args[:len(args):len(args)], "BLOCK", milliseconds(rest)))
		if !isNull(err) || d > 0 && time.Since(begin) >= d {
			return v, err
		}
	}
}

// send sends one request. When ctx ends it ends the wait, so that the reply says what was done.
func (w *waiter) send(ctx context.Context, args []any) (any, error) {
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	w.asked = time.Now()
	w.requests <- args
	var r reply
	select {
	case r = <-w.replies:
	case <-ctx.Done():
		var ok bool
		if r, ok = w.interrupt(); !ok {
			w.c.cut(w.pool) // so that the server gives nothing to a wait that nobody has any more
			r.err = &unknownError{ctx.Err()}
		}
	}
	if r.err != nil && !isReply(r.err) {
		w.close()
	}
	return r.value, r.err
}

// reply holds what comes back for a request.
type reply struct {
	value any
	err   error
}

// interrupt tells the server to end the wait, and returns the reply. The server may get this before
// the request, so it is told again, less and less often, for as long as a reply may take. It may
// refuse, if the connections are not of one user.
func (w *waiter) interrupt() (reply, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), w.c.patience)
	defer cancel()
	for pause := time.Millisecond; ; pause *= 2 {
		if err := w.c.rdb.ClientUnblock(ctx, w.id).Err(); err != nil && !passing(refusal(err)) {
			return reply{}, false
		}
		select {
		case r := <-w.replies:
			return r, true
		case <-time.After(pause):
		case <-ctx.Done():
			return reply{}, false
		}
	}
}

// connect makes the connection if there is none. Its replies may take a turn.
func (w *waiter) connect(ctx context.Context) error {
	if w.requests != nil || ctx.Err() != nil {
		return ctx.Err()
	}
	pool, err := w.c.lend()
	if err != nil {
		return err
	}
	conn := pool.WithTimeout(w.turn + w.fill + w.c.patience).Conn()
	connecting, cancel := context.WithTimeout(ctx, w.c.patience)
	defer cancel()
	id, err := conn.ClientID(connecting).Result()
	if err != nil {
		_ = conn.Close()
		w.c.takeBack(pool)
		return refusal(err)
	}
	requests, replies := make(chan []any, 1), make(chan reply, 1)
	w.requests, w.replies, w.pool, w.id = requests, replies, pool, id
	go func() { // ends with requests, at the end of a turn at the latest
		for args := range requests {
			v, err := doOnce(context.WithoutCancel(ctx), conn, args)
			replies <- reply{v, err}
		}
		_ = conn.Close() // returns it to the pool
		w.c.takeBack(pool)
	}()
	return nil
}

// close gives the connection up.
func (w *waiter) close() {
	if w.requests != nil {
		close(w.requests)
		w.requests = nil
	}
}
