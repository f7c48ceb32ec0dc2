package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"github.com/holdfast-queue/holdfast/cmd/ask"
	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/folder"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Exit codes, as the help describes them.
const (
	exitOK      = 0
	exitFailed  = 1 // an error, with one line on standard error
	exitUsage   = 2 // a wrong command line; nothing was done
	exitNothing = 3 // there is no such packet or queue, or nothing to select
	exitStale   = 4 // the claim has ended, or its packet was cancelled
	exitTrouble = 5 // something needs somebody, and was printed

	exitUnsound    = exitFailed // verify: something is wrong with the folder
	exitNotChecked = exitUsage  // verify: the folder was not checked
)

// program is the process with what is known of its command line.
type program struct {
	terminal.Process
	// hangups has SIGHUP go to the channel that it returns, and end nothing any more; nil where it
	// always ends the process.
	hangups func() <-chan os.Signal

	// Set by run.
	args     []string
	commands *commands
	sources  *config.Sources
}

// run carries out a command line, without the program's name, and returns the exit code. When ctx
// ends, a server drains and any other command stops.
func (p *program) run(ctx context.Context, args []string) int {
	// The file itself for help: the parser asks for the width of the terminal.
	help := p.Begin(ctx, func(err error) { p.tell(err, exitOK) })
	if len(args) == 0 {
		args = []string{"help"}
	}
	if args[0] == "--version" { // as a flag, each command would have it
		args = append([]string{"version"}, args[1:]...)
	}
	helped := false
	parser, err := p.parser(ctx, asHelp(args), help, &helped)
	if err != nil {
		return p.tell(err, exitFailed)
	}
	if line, _ := p.Env("COMP_LINE"); line != "" { // a shell asks how it may go on
		kongcompletion.Register(parser, p.predictors(ctx, parser.Model.Node)...)
		return exitOK
	}
	parsed, err := p.parse(parser)
	var inFile config.Error
	switch {
	case helped: // the parser goes on after it has printed the help
		return exitOK
	case errors.As(err, &inFile):
		return p.tell(inFile, exitFailed)
	case errors.Is(err, syscall.EPIPE): // "head" has seen enough of the help
		return exitFailed
	case err != nil:
		return p.tell(fmt.Errorf("%w; see %s --help", err, commandOf(err)), exitUsage)
	}
	err = nameQueue(parsed, parsed.Run())
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, ask.ErrNothing), errors.Is(err, client.ErrNoQueue), errors.Is(err, client.ErrNoPacket):
		return p.tell(err, exitNothing)
	case errors.Is(err, client.ErrStale), errors.Is(err, client.ErrCancelled):
		return p.tell(err, exitStale)
	case errors.Is(err, folder.ErrNotChecked):
		return p.tell(err, exitNotChecked)
	case errors.Is(err, terminal.ErrNotConfirmed), errors.As(err, new(ask.UsageError)):
		return p.tell(err, exitUsage)
	case errors.Is(err, terminal.ErrReaderGone):
		return exitFailed
	case errors.Is(err, ask.ErrTrouble):
		return exitTrouble
	}
	return p.tell(err, exitFailed)
}

// parser makes the parser of a command line.
func (p *program) parser(ctx context.Context, args []string, help io.Writer, helped *bool) (*kong.Kong, error) {
	p.args, p.commands, p.sources = args, &commands{}, config.NewSources(p.Env)
	return p.sources.Parser(p.commands,
		kong.Description(description),
		kong.Writers(help, p.Stderr),
		kong.Exit(func(int) { *helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Help(printHelp),
		kong.WithAfterApply(refuseEmpty),
		kong.Bind(p, &p.Process),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.IgnoreFields(p.unneeded()),
	)
}

// unneeded matches the commands that the line does not name. What they all take is slow to learn.
func (p *program) unneeded() string {
	var named bool
	var others []string
	for field := range reflect.TypeFor[commands]().Fields() {
		if _, ok := field.Tag.Lookup("cmd"); !ok {
			continue
		}
		if name := cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name)); len(p.args) > 0 && name == p.args[0] {
			named = true
		} else {
			others = append(others, field.Name)
		}
	}
	if line, _ := p.Env("COMP_LINE"); !named || p.args[0] == "man" || line != "" {
		return `^$` // which no field matches: all are told of
	}
	return `^commands\.(` + strings.Join(others, "|") + `)$`
}

// parse reads the command line. The error is a Error if it is about the config file.
func (p *program) parse(parser *kong.Kong) (*kong.Context, error) {
	parsed, err := parser.Parse(p.args)
	if err != nil {
		err = worded(p.sources.Locate(err), p.args, parser.Model.Node)
	}
	return parsed, err
}

// tell prints an error, and what to do about it, on one line.
func (p *program) tell(err error, code int) int {
	text := terminal.OneLine(err)
	if errors.Is(err, context.Canceled) {
		text = strings.Replace(text, context.Canceled.Error(), "interrupted", 1)
	}
	if do := remedyOf(err); do != "" {
		text = strings.TrimSuffix(text, ".") + "; " + do
	}
	fmt.Fprintln(p.Stderr, "holdfast: "+terminal.Legible(text))
	return code
}

// commandOf is the command whose help explains a wrong command line.
func commandOf(err error) string {
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		name := ""
		for node := parse.Context.Selected(); node != nil && node.Type == kong.CommandNode; node = node.Parent {
			name = " " + node.Name + name
		}
		return "holdfast" + name
	}
	return "holdfast"
}
