package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// operatorPort is the flags of a command that copies packets out of a running server.
type operatorPort struct {
	Admin   string        `default:"127.0.0.1:7072" address:"127.0.0.1:7072" placeholder:"HOST:PORT" help:"Address of the server's operator port (default ${default})."`
	Timeout time.Duration `default:"30s" range:"1ms 3650d" placeholder:"TIME" help:"How long to wait for the server's next bytes (default ${default})."`
}

// fetch asks for a backup.
func (o *operatorPort) fetch(ctx context.Context, r admin.Request) (*admin.Transfer, error) {
	body, err := admin.Fetch(ctx, o.Admin, r, o.Timeout)
	switch {
	case err == nil:
		return body, nil
	case errors.Is(err, context.Canceled):
		return nil, errors.New("interrupted")
	case isDial(err):
		return nil, dialError(err, o.Admin, "--admin")
	case errors.Is(err, admin.ErrRefused):
		return nil, err
	}
	return nil, fmt.Errorf("%w; check that --admin %s is the server's operator port", err, o.Admin)
}
