package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/holdfast-queue/holdfast/cmd/config"
)

// helpCmd explains a command. It never runs: program.run makes "pop --help" of "help pop".
type helpCmd struct {
	Command []string `arg:"" optional:"" predictor:"command" help:"Command to explain (default: all of them, in short)."`
}

func (c *helpCmd) Help() string {
	return `Prints what a command does, its flags and examples, as "holdfast COMMAND --help" does.

Examples:

    holdfast help
    holdfast help push
    holdfast help barbershop import`
}

// printHelp leaves out the flag for contexts where a command has no use for it.
func printHelp(options kong.HelpOptions, line *kong.Context) error {
	config.ContextFlag(line).Hidden = line.Selected() != nil && !config.IsClient(line.Selected())
	return kong.DefaultHelpPrinter(options, line)
}

// asHelp makes the flag --help of the command help.
func asHelp(args []string) []string {
	if len(args) == 0 || args[0] != "help" || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }) {
		return args
	}
	return append(slices.Clone(args[1:]), "--help")
}
