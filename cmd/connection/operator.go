package connection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// Operator is the flags of a command that asks the operator's port of a running server.
type Operator struct {
	Admin   string        `group:"Connection" default:"127.0.0.1:7072" address:"127.0.0.1:7072" placeholder:"HOST:PORT" help:"Address of the server's operator port (default ${default})."`
	Timeout time.Duration `group:"Connection" default:"30s" range:"1ms 3650d" placeholder:"TIME" help:"How long to wait for the server's next bytes (default ${default})."`

	Encryption `group:"Connection"`
	Login      `group:"Connection"`
}

// Fetch asks for a backup, which the caller closes.
func (o *Operator) Fetch(ctx context.Context, r admin.Request) (*admin.Transfer, error) {
	c, err := o.client()
	if err != nil {
		return nil, err
	}
	body, err := c.Fetch(ctx, r)
	return body, o.explain(err)
}

// Ready returns nil if the server is ready.
func (o *Operator) Ready(ctx context.Context) error {
	return o.Ask(func(c *admin.Client) error { return c.Ready(ctx) })
}

// Reload has the server read its settings again, and returns what has changed.
func (o *Operator) Reload(ctx context.Context) (said admin.Reloaded, err error) {
	err = o.Ask(func(c *admin.Client) error {
		said, err = c.Reload(ctx)
		return err
	})
	return said, err
}

// Ask has the port asked for something.
func (o *Operator) Ask(ask func(c *admin.Client) error) error {
	c, err := o.client()
	if err != nil {
		return err
	}
	return o.explain(ask(c))
}

// client is what the flags say.
func (o *Operator) client() (*admin.Client, error) {
	user, password, err := o.Login.Read()
	if err != nil {
		return nil, err
	}
	config, err := o.Config()
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		return connect(ctx, address, o.Timeout, config)
	}
	return &admin.Client{Address: o.Admin, User: user, Password: password, Timeout: o.Timeout, Dial: dial}, nil
}

// explain says in words why the port did not answer as it should.
func (o *Operator) explain(err error) error {
	switch {
	case err == nil, errors.Is(err, admin.ErrRefused), errors.Is(err, admin.ErrUnknown), errors.Is(err, admin.ErrNotReady):
		return o.Encryption.Explain(err, o.Admin)
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case isDial(err):
		return dialError(err, o.Admin, "--admin")
	}
	return o.Encryption.Explain(fmt.Errorf("%w; check that --admin %s is the server's operator port", err, o.Admin), o.Admin)
}
