package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// server is the flags of the command that speaks pinpriq to a server.
type server struct {
	Pinpriq string        `default:"127.0.0.1:7070" address:"127.0.0.1:7070" placeholder:"HOST:PORT" help:"Address of the server (default ${default})."`
	Timeout time.Duration `default:"30s" range:"1ms 3650d" placeholder:"TIME" help:"How long to wait for the server (default ${default})."`
}

// dial connects to an address that a flag gave.
func dial(ctx context.Context, address, flag string, timeout time.Duration) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: timeout}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, dialError(err, address, flag)
	}
	return conn.(*net.TCPConn), nil
}

// dialError explains why there is no connection to an address that a flag gave.
func dialError(err error, address, flag string) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no server answers at %s: start one with \"holdfast serve\", or name its address with %s", address, flag)
	}
	return fmt.Errorf("connect to %s: %w", address, err)
}

// isDial tells whether an error is about making a connection.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
