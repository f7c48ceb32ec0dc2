package ask

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/connection"
)

// countItems asks the server at an address that --barbershop gave how many items its board has. It
// ends the connection behind the request, so that a server of another protocol does not wait for
// more of it. The answer of another protocol, or one that takes longer than timeout, is an error.
func countItems(ctx context.Context, address string, timeout time.Duration, e *connection.Encryption) (int64, error) {
	conn, err := e.Dial(ctx, address, "--barbershop", timeout)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	count, err := askItems(conn)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, e.Explain(fmt.Errorf("the server at %s does not say how many items it has: %w; check that it speaks barbershop", address, err), address)
	}
	return count, nil
}

// maxStats bounds what is read of an answer. It is far more than the statistics of a board take.
const maxStats = 4 << 10

func askItems(conn connection.Stream) (int64, error) {
	if _, err := io.WriteString(conn, "stats\r\n"); err != nil {
		return 0, err
	}
	_ = conn.CloseWrite() // if it fails, the answer says why
	in := bufio.NewScanner(io.LimitReader(conn, maxStats))
	for in.Scan() {
		if number, ok := strings.CutPrefix(in.Text(), "STAT items "); ok {
			return strconv.ParseInt(number, 10, 64)
		}
		if !strings.HasPrefix(in.Text(), "STAT ") {
			return 0, fmt.Errorf("it answers %.200q to stats", in.Text())
		}
	}
	if err := in.Err(); err != nil {
		return 0, err
	}
	return 0, io.ErrUnexpectedEOF
}
