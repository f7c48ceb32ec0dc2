package main

import (
	"context"
	"fmt"
	"strings"
)

// unsetCmd brings defaults back.
type unsetCmd struct {
	Queue string   `arg:"" help:"Queue whose settings to reset."`
	Names []string `arg:"" name:"name" predictor:"setting" help:"Settings, such as lease or enum.class."`

	settingsForm
}

// Help is shown below the usage line.
func (c *unsetCmd) Help() string {
	return `Gives settings of a queue their defaults, and prints them. enum.TAG has none: the values of the tag are in no order then. "holdfast set --help" explains the settings. If there is no such queue, nothing is changed and the exit code is 3.

Examples:

    holdfast unset jobs lease dead-letter
    holdfast unset tasks enum.performance_class`
}

// Validate is called with the parsed flags.
func (c *unsetCmd) Validate() error {
	for _, name := range c.Names {
		if err := checkSettable(name); err != nil {
			return err
		}
		if findSetting(name) == nil && !strings.HasPrefix(name, enumPrefix) {
			return fmt.Errorf("unknown setting %.80q: expected one of %s", name, strings.Join(settingNames(), ", "))
		}
	}
	return c.workServer.Validate()
}

// Run resets the settings.
func (c *unsetCmd) Run(ctx context.Context, p *program) error {
	var changes settingChanges
	for _, name := range c.Names {
		changes.add(name, defaultOf(name))
	}
	return c.change(ctx, p, c.Queue, true, &changes)
}

// defaultOf is a default as the server takes it.
func defaultOf(name string) string {
	switch k := findSetting(name); {
	case k == nil || k.Kind == settingName:
		return ""
	case k.Kind == settingChoice:
		return k.Words[0]
	case k.Kind == settingFlag:
		return "no"
	default:
		return decimal(k.Default)
	}
}
