package ask

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// Reload has a server read its settings again.
type Reload struct {
	JSON bool `help:"Print a JSON object: changed, and restart, are keys of the config file."`

	connection.Operator
}

func (c *Reload) Help() string {
	return `Has a running server read its config file and all files again, as SIGHUP does: users, passwords, certificates, the log level and the defaults of queues, all or nothing. Prints which keys have changed, and which need a restart. With users it needs the right operate.

Exit codes: 0 reloaded, 1 nothing has changed, as the settings are not right.

Examples:

    holdfast reload
    holdfast reload --admin 127.0.0.1:7172 --user ann --password-file password`
}

func (c *Reload) Run(ctx context.Context, p *terminal.Process) error {
	said, err := c.Operator.Reload(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		var o terminal.JSON
		o.Add("changed", said.Changed)
		o.Add("restart", said.Restart)
		return o.Print(p.Stdout)
	}
	changed := "nothing has changed"
	if len(said.Changed) > 0 {
		changed = strings.Join(said.Changed, ", ")
	}
	if _, err = fmt.Fprintln(p.Stdout, "reloaded:", changed); err == nil && len(said.Restart) > 0 {
		_, err = fmt.Fprintln(p.Stdout, "a restart is needed for:", strings.Join(said.Restart, ", "))
	}
	return err
}
