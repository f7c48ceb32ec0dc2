package ask

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// asker is a command that asks a server, and prints what it answers.
type asker interface {
	Ask(ctx context.Context, p *terminal.Process, server *client.Client) error
}

// asking is the flags of an asker, and the frame around what it asks.
type asking struct{ connection.WorkQueue }

// Run is what the parser calls for each command that has these flags: it connects, has the command
// ask, and explains what went wrong.
func (a *asking) Run(ctx context.Context, p *terminal.Process, line *kong.Context) error {
	command := line.Selected().Target.Addr().Interface().(asker)
	err := a.Call(ctx, func(ctx context.Context, server *client.Client) error { return command.Ask(ctx, p, server) })
	if err != nil && strings.HasPrefix(err.Error(), "id: expected ") { // the server knows what an id is
		err = UsageError{err}
	} else if why, ok := strings.CutSuffix(fmt.Sprint(err), "FORCE lets them, outside of MULTI"); ok {
		err = UsageError{errors.New(why + "--force lets them")}
	}
	return err
}

// UsageError is about the command line, which somebody else has looked at.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }
