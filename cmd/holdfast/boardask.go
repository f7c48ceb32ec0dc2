package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// countItems asks the server at an address that --barbershop gave how many items are on its board. It has a
// connection of its own, which it ends behind the request, so a server of another protocol sees that nothing
// more comes. An answer that takes longer than timeout, or is not one of this protocol, is an error that hints at
// the address.
func countItems(ctx context.Context, address string, timeout time.Duration) (int64, error) {
	dialer := net.Dialer{Timeout: timeout}
	socket, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, dialError(err, address, "--barbershop")
	}
	defer socket.Close()
	if err := socket.SetDeadline(time.Now().Add(timeout)); err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer stop()
	count, err := askItems(socket.(*net.TCPConn))
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, fmt.Errorf("the server at %s does not say how many items it has: %w; check that it speaks barbershop", address, err)
	}
	return count, nil
}

// maxStats is far more than the statistics of a board have, and bounds what another server is listened to.
const maxStats = 4 << 10

func askItems(conn *net.TCPConn) (int64, error) {
	if _, err := io.WriteString(conn, "stats\r\n"); err != nil {
		return 0, err
	}
	if err := conn.CloseWrite(); err != nil {
		return 0, err
	}
	in := bufio.NewScanner(io.LimitReader(conn, maxStats))
	for in.Scan() {
		if number, ok := strings.CutPrefix(in.Text(), "STAT items "); ok {
			return strconv.ParseInt(number, 10, 64)
		}
		if !strings.HasPrefix(in.Text(), "STAT ") {
			return 0, fmt.Errorf("it answers %.80q to stats", in.Text())
		}
	}
	if err := in.Err(); err != nil {
		return 0, err
	}
	return 0, io.ErrUnexpectedEOF
}
