package main

import (
	"fmt"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/posener/complete"
)

// completionCmd prints the code that lets a shell complete command lines.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

func (c *completionCmd) Help() string {
	return `Prints code with which the Tab key completes commands, flags and their values. Put the line of your shell into ~/.config/fish/config.fish, into ~/.bashrc, or into ~/.zshrc after compinit.

Examples:

    holdfast completion fish | source
    source <(holdfast completion bash)
    source <(holdfast completion zsh)`
}

// fishFiles completes names of files where the program has no answer, as the code for bash and zsh
// does.
const fishFiles = `complete -c holdfast -n "not __complete_holdfast | string length -q" -F`

// predictors complete arguments that are one of some words.
func predictors(app *kong.Node) []kongcompletion.Option {
	var commands, settings []string
	for _, c := range app.Children {
		commands = append(commands, c.Name)
	}
	for _, name := range settingNames() {
		settings = append(settings, name+"=")
	}
	return []kongcompletion.Option{
		kongcompletion.WithPredictor("command", complete.PredictSet(commands...)),
		kongcompletion.WithPredictor("setting", complete.PredictSet(settingNames()...)),
		kongcompletion.WithPredictor("setting=", complete.PredictSet(settings...)),
	}
}

// Run prints. The code has the shell start this program, with the line so far in its environment.
func (c *completionCmd) Run(ctx *kong.Context, p *program) error {
	ctx.Stdout = p.stdout
	err := (&kongcompletion.Completion{Shell: c.Shell, Code: true}).Run(ctx)
	if err == nil && c.Shell == "fish" {
		_, err = fmt.Fprintln(p.stdout, fishFiles)
	}
	return err
}
