package loadgen

import (
	"context"
	"fmt"
	"net"
	"time"
)

const dialTimeout = 10 * time.Second

// Ask sends one request on a connection of its own and waits for the answer, which shows whether a
// starting server is ready.
func Ask(ctx context.Context, addr string, p Protocol) (Progress, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	socket, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return Progress{}, fmt.Errorf("no connection to %s: %w", addr, err)
	}
	defer socket.Close()
	return AskOn(ctx, socket, p)
}

// AskOn sends a request on a connection, and waits for the answer.
func AskOn(ctx context.Context, socket net.Conn, p Protocol) (total Progress, err error) {
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	out, in, partial := p.Append(nil, 0, 1), make([]byte, readBuffer), 0
	for total.Done == 0 && total.Packets == 0 {
		n := 0
		if _, err = socket.Write(out); err == nil {
			n, err = socket.Read(in[partial:])
		}
		if ctx.Err() != nil {
			return total, ctx.Err()
		}
		if err != nil {
			return total, fmt.Errorf("the connection to %s failed before the answer: %w", socket.RemoteAddr(), err)
		}
		partial += n
		var progress Progress
		if out, progress, err = p.Consume(out[:0], in[:partial]); err != nil {
			return total, err
		}
		partial = copy(in, in[progress.Used:partial])
		total.add(progress)
	}
	return total, nil
}
