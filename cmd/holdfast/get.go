package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// getCmd prints settings.
type getCmd struct {
	Queue string `arg:"" help:"Queue to look at."`
	JSON  bool   `help:"Print a JSON object. Times are milliseconds, sizes bytes."`

	workServer
}

// Help is shown below the usage line.
func (c *getCmd) Help() string {
	return `Prints the settings of a queue, those that nobody has set, too. "holdfast set --help" explains them. If there is no such queue, the exit code is 3.

Examples:

    holdfast get jobs
    holdfast get jobs --json`
}

// Run prints the settings.
func (c *getCmd) Run(ctx context.Context, p *program) error {
	return c.call(ctx, func(ctx context.Context, server *client.Client) error {
		settings, err := server.Get(ctx, c.Queue)
		if err != nil {
			return err
		}
		if c.JSON {
			_, err = p.stdout.Write(settingsJSON(settings))
			return err
		}
		t := newTable(p.stdout)
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			value := settings[name]
			if tag, ok := strings.CutPrefix(name, "enum "); ok {
				name = enumPrefix + cell(tag, longCell)
			}
			t.row(name, settingText(name, value))
		}
		return t.Flush()
	})
}

func settingsJSON(settings map[string]string) []byte {
	var o jsonObject
	orders := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value, field := settings[name], strings.ReplaceAll(name, "-", "_")
		n, err := strconv.ParseInt(value, 10, 64)
		tag, isOrder := strings.CutPrefix(name, "enum ")
		switch {
		case isOrder:
			orders[tag] = strings.Split(value, ",")
		case err == nil && kindOf(name) != aText:
			o.add(field, n)
		default:
			o.bytes(field, []byte(value))
		}
	}
	if len(orders) > 0 {
		o.add("enum", orders)
	}
	return o.line()
}
