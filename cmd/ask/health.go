package ask

import (
	"context"
	"fmt"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// Health asks a server whether it is ready.
type Health struct {
	connection.Operator
}

func (c *Health) Help() string {
	return `Asks the operator's port of a server whether it is ready, and prints "ok" if it is: it serves, and its disk takes packets. Otherwise it prints why not, such as how far its start is. For health checks of containers, and for scripts that wait.

Exit codes: 0 ready, 1 not ready, or no server answers.

Examples:

    holdfast health
    holdfast health --admin 127.0.0.1:7172 --timeout 5s
    until holdfast health; do sleep 1; done`
}

func (c *Health) Run(ctx context.Context, p *terminal.Process) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.Stdout, "ok")
	return err
}
