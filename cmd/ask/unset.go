package ask

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Unset brings defaults back.
type Unset struct {
	Queue string   `arg:"" predictor:"queue" help:"Queue whose settings to reset."`
	Names []string `arg:"" name:"name" predictor:"setting" help:"Settings, such as lease or enum.class."`

	settingsForm
}

func (c *Unset) Help() string {
	return `Gives settings of a queue their defaults, and prints them. enum.TAG has none: the values of the tag are in no order then. "holdfast set --help" explains the settings. If there is no such queue, nothing is changed and the exit code is 3.

Examples:

    holdfast unset jobs lease dead-letter
    holdfast unset tasks enum.performance_class`
}

func (c *Unset) Validate() error {
	for _, name := range c.Names {
		if err := config.CheckSettable(name); err != nil {
			return err
		}
		if _, ok := config.SettingDefault(name); !ok {
			return fmt.Errorf("unknown setting %.80q: expected one of %s%s", name, strings.Join(config.SettingNames(), ", "), terminal.Nearest(name, config.SettingNames()))
		}
	}
	return nil
}

func (c *Unset) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	var changes config.SettingChanges
	for _, name := range c.Names {
		value, _ := config.SettingDefault(name)
		changes.Add(name, value)
	}
	return c.change(ctx, p, server, c.Queue, true, &changes)
}
