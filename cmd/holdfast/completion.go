package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/posener/complete"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// completionCmd prints the code that lets a shell complete command lines.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

func (c *completionCmd) Help() string {
	return `Prints code with which the Tab key completes commands, flags and their values, and names of queues where the server answers. Put the line of your shell into ~/.config/fish/config.fish, into ~/.bashrc, or into ~/.zshrc after compinit.

Examples:

    holdfast completion fish | source
    source <(holdfast completion bash)
    source <(holdfast completion zsh)`
}

// fishFiles completes names of files where the program has no answer, as the code for bash and zsh
// does.
const fishFiles = `complete -c holdfast -n "not __complete_holdfast | string length -q" -F`

// predictors complete arguments that are one of some words.
func (p *program) predictors(ctx context.Context, app *kong.Node) []kongcompletion.Option {
	var commands, settings []string
	for _, c := range app.Children {
		commands = append(append(commands, c.Name), c.Aliases...)
	}
	for _, name := range config.SettingNames() {
		settings = append(settings, name+"=")
	}
	return []kongcompletion.Option{
		kongcompletion.WithPredictor("command", complete.PredictSet(commands...)),
		kongcompletion.WithPredictor("queue", complete.PredictFunc(func(line complete.Args) []string { return p.queueNames(ctx, line) })),
		kongcompletion.WithPredictor("setting", complete.PredictSet(config.SettingNames()...)),
		kongcompletion.WithPredictor("setting=", complete.PredictSet(settings...)),
	}
}

// toServer are the flags that say which queues are meant.
var toServer = []string{"context", "redis", "db", "user", "password-file", "tls", "tls-ca", "tls-cert", "tls-key"}

// queueNames are those of the server that a line means, if it answers within a second. A password
// file that is a pipe may keep who reads it for ever: the program ends meanwhile.
func (p *program) queueNames(ctx context.Context, line complete.Args) []string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	found := make(chan []string, 1)
	go func() { found <- p.findQueueNames(ctx, line) }()
	select {
	case names := <-found:
		return names
	case <-ctx.Done():
		return nil
	}
}

// findQueueNames is queueNames without a limit. Names that a shell would take for something else
// are left out.
func (p *program) findQueueNames(ctx context.Context, line complete.Args) (names []string) {
	args := []string{"queues"}
	for i, word := range line.Completed {
		name, isFlag := strings.CutPrefix(word, "--")
		name, _, whole := strings.Cut(name, "=")
		if !isFlag || !slices.Contains(toServer, name) {
			continue
		}
		if args = append(args, word); !whole && name != "tls" && i+1 < len(line.Completed) {
			args = append(args, line.Completed[i+1])
		}
	}
	asking := &program{Process: terminal.Process{Stdin: p.Stdin, Stdout: io.Discard, Stderr: io.Discard, Env: func(name string) (string, bool) {
		if name == "COMP_LINE" {
			return "", false
		}
		return p.Env(name)
	}}}
	parser, err := asking.parser(ctx, args, io.Discard, new(bool))
	if err != nil {
		return nil
	}
	if _, err := asking.parse(parser); err != nil {
		return nil
	}
	match := ""
	if isWord(line.Last) {
		match = line.Last + "*"
	}
	_ = asking.commands.Queues.Call(ctx, func(ctx context.Context, server *client.Client) (err error) {
		names, err = server.Queues(ctx, match)
		return err
	})
	return slices.DeleteFunc(names, func(name string) bool { return !isWord(name) })
}

// isWord says that no shell sees more in a text than a word, and no pattern.
func isWord(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("._-:/@%+,", c)
	})
}

// Run prints. The code has the shell start this program, with the line so far in its environment.
func (c *completionCmd) Run(ctx *kong.Context, p *program) error {
	ctx.Stdout = p.Stdout
	err := (&kongcompletion.Completion{Shell: c.Shell, Code: true}).Run(ctx)
	if err == nil && c.Shell == "fish" {
		_, err = fmt.Fprintln(p.Stdout, fishFiles)
	}
	return err
}
