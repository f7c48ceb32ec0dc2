package ask

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Set changes settings.
type Set struct {
	Queue    string   `arg:"" predictor:"queue" help:"Queue to set. It is made if there is none."`
	Settings []string `arg:"" name:"name=value" predictor:"setting=" help:"Settings, such as lease=1m, bound-bytes=64MiB or enum.class=low,standard,high."`

	settingsForm
}

func (c *Set) Help() string {
	var names strings.Builder
	for _, k := range content.SettingsTable {
		if !k.Fixed {
			fmt.Fprintf(&names, "    %-20s %s\n", strings.Replace(k.Name, "enum", config.EnumPrefix+"TAG", 1), k.Help)
		}
	}
	return `Prints the settings as they are then. Times are written as 30s or 2d, sizes as 64MiB, a switch as yes or no. The order of the values of a tag is declared by enum.TAG; an empty one ends it. With more than one of those, the settings go to the server in as many steps. "holdfast unset" brings a default back.

` + names.String() + `
Examples:

    holdfast set jobs max-attempts=3 lease=5m dead-letter=graves
    holdfast set jobs bound=10000 bound-bytes=64MiB full=block
    holdfast set tasks enum.performance_class=low,standard,performance,high_performance`
}

func (c *Set) Validate() error {
	_, err := c.changes()
	return cmp.Or(checkPairs("<name=value>", c.Settings), err)
}

func (c *Set) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	changes, err := c.changes()
	if err != nil {
		return err
	}
	return c.change(ctx, p, server, c.Queue, false, changes)
}

func (c *Set) Run(ctx context.Context, p *terminal.Process, line *kong.Context) error {
	err := c.asking.Run(ctx, p, line)
	for _, pair := range c.Settings { // the server has looked at names and texts
		name, _, _ := strings.Cut(pair, "=")
		switch name, _, _ = strings.Cut(name, "."); {
		case err == nil:
		case strings.HasPrefix(err.Error(), fmt.Sprintf("unknown setting %q", name)):
			return UsageError{fmt.Errorf("%w%s", err, terminal.Nearest(name, config.SettingNames()))}
		case strings.HasPrefix(err.Error(), name+": "):
			return UsageError{err}
		}
	}
	return err
}

// UsageError is about the command line, which somebody else has looked at.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

func (c *Set) changes() (*config.SettingChanges, error) {
	var changes config.SettingChanges
	for _, pair := range c.Settings {
		name, text, _ := strings.Cut(pair, "=")
		value, err := config.ParseSetting(name, text)
		if err := cmp.Or(config.CheckSettable(name), err); err != nil {
			return nil, err
		}
		changes.Add(name, value)
	}
	return &changes, nil
}
