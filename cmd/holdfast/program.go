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
	"sync/atomic"
	"syscall"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Exit codes, as the help describes them.
const (
	exitOK      = 0
	exitFailed  = 1 // an error, with one line on standard error
	exitUsage   = 2 // a wrong command line; nothing was done
	exitNothing = 3 // there is no such packet or queue, or nothing to select
	exitStale   = 4 // the claim has ended

	exitUnsound    = exitFailed // verify: something is wrong with the folder
	exitNotChecked = exitUsage  // verify: the folder was not checked
)

const description = `A durable priority queue: one binary, one data folder.

Where the help of a flag names an environment variable, that can stand in for the flag. The flag wins, and an empty variable counts as not set. A time has a unit: 500ms, 30s, 5m, 1h30m, 2d, 1w.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 nothing there, 4 the claim has ended. Of verify: 0 sound, 1 not sound, 2 not checked.

Examples:

    holdfast serve --data ./holdfast-data
    holdfast push jobs hello --priority 1
    holdfast pop jobs
    holdfast queues`

// commands is the command line: one field for each command. The parser shows what its Help returns
// below the usage line, and calls its Validate, if it has one, with the parsed flags before Run.
type commands struct {
	Context string `placeholder:"NAME" help:"Context: a name for the flags under Connection, in ~/.config/holdfast/contexts.toml."`

	Serve   serveCmd   `cmd:"" group:"Server" help:"Serve queues from a data folder."`
	Config  configCmd  `cmd:"" group:"Server" help:"Check a config file of the server, or show the settings in force."`
	Hash    hashCmd    `cmd:"" group:"Server" help:"Make the hash of a password, for the users in a config file."`
	Status  statusCmd  `cmd:"" group:"Server" help:"Print how a running server is."`
	Health  healthCmd  `cmd:"" group:"Server" help:"Tell whether a running server is ready."`
	Doctor  doctorCmd  `cmd:"" group:"Server" help:"Say what to change on this machine before a server runs in earnest."`
	Bench   benchCmd   `cmd:"" group:"Server" help:"Measure a running server."`
	Metrics metricsCmd `cmd:"" group:"Server" help:"Print rules for alerts."`

	Push      pushCmd      `cmd:"" group:"Packets" help:"Push a packet and wait until it is on disk."`
	Pop       popCmd       `cmd:"" group:"Packets" help:"Pop the best packet of a queue."`
	Subscribe subscribeCmd `cmd:"" group:"Packets" help:"Print packets of queues as they come."`
	Claim     claimCmd     `cmd:"" group:"Packets" help:"Claim a packet for the time of a lease."`
	Work      workCmd      `cmd:"" group:"Packets" help:"Run a command for each packet of a queue."`
	Ack       ackCmd       `cmd:"" group:"Packets" help:"Acknowledge a claimed packet: the work is done."`
	Nack      nackCmd      `cmd:"" group:"Packets" help:"Return a claimed packet: the work failed."`
	Extend    extendCmd    `cmd:"" group:"Packets" help:"Renew the lease of a claimed packet."`

	Queues    queuesCmd    `cmd:"" group:"Queues" help:"List the queues."`
	Stats     statsCmd     `cmd:"" group:"Queues" help:"Print the figures of queues."`
	Peek      peekCmd      `cmd:"" group:"Queues" help:"Print the packets that come next."`
	List      listCmd      `cmd:"" group:"Queues" help:"List the packets of a queue."`
	Show      showCmd      `cmd:"" group:"Queues" help:"Print all that is known of a packet."`
	Tail      tailCmd      `cmd:"" group:"Queues" help:"Print what happens in a queue as it happens."`
	Consumers consumersCmd `cmd:"" group:"Queues" help:"List who claims packets, or waits for them."`

	Purge   purgeCmd   `cmd:"" group:"Queues" help:"Delete packets of a queue."`
	Harvest harvestCmd `cmd:"" group:"Queues" help:"End claims: their packets are ready again."`
	Redrive redriveCmd `cmd:"" group:"Queues" help:"Make dead packets ready again."`
	Move    moveCmd    `cmd:"" group:"Queues" help:"Move packets to another queue."`
	Delete  deleteCmd  `cmd:"" group:"Queues" help:"Delete packets by their ids."`
	Prio    prioCmd    `cmd:"" group:"Queues" help:"Change the priority of a packet."`
	Set     setCmd     `cmd:"" group:"Queues" help:"Change settings of a queue."`
	Unset   unsetCmd   `cmd:"" group:"Queues" help:"Give settings of a queue their defaults."`
	Get     getCmd     `cmd:"" group:"Queues" help:"Print the settings of a queue."`
	Pause   pauseCmd   `cmd:"" group:"Queues" help:"Have a queue take and give no packets for a while."`
	Resume  resumeCmd  `cmd:"" group:"Queues" help:"End a pause."`
	Close   closeCmd   `cmd:"" group:"Queues" help:"Have a queue take no more packets, for ever."`
	Drop    dropCmd    `cmd:"" group:"Queues" help:"Delete a queue with its packets and settings."`

	Backup  backupCmd  `cmd:"" group:"Data" help:"Copy the packets of a running server to a file."`
	Dump    dumpCmd    `cmd:"" group:"Data" help:"Write out the packets of a data folder, without a server."`
	Load    loadCmd    `cmd:"" group:"Data" help:"Make a data folder from a dump or a backup."`
	Restore restoreCmd `cmd:"" group:"Data" help:"Make a data folder from a backup of files."`
	Verify  verifyCmd  `cmd:"" group:"Data" help:"Check that a data folder or a backup is sound, or say what is wrong with it."`
	Compact compactCmd `cmd:"" group:"Data" help:"Make a data folder as small as possible."`

	Contexts contextsCmd `cmd:"" name:"context" group:"Server" help:"List or print contexts: names for servers and the ways to them."`

	Barbershop barbershopCmd `cmd:"" group:"Data" help:"Import or export the items of a running server."`

	TLS tlsCmd `cmd:"" name:"tls" group:"Server" help:"Make certificates."`

	Completion completionCmd `cmd:"" group:"Server" help:"Print code that completes command lines in a shell."`
	Man        manCmd        `cmd:"" group:"Server" help:"Print the manual page."`
	Version    versionCmd    `cmd:"" group:"Server" help:"Print the version of the program, as --version does."`
	Help       helpCmd       `cmd:"" group:"Server" help:"Explain a command, as its --help does."`
}

// program is the process as the commands see it. Tests make their own.
type program struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	env    func(name string) (string, bool)
	atEnd  atomic.Value // func() that a second signal calls, if any
	// hangups has SIGHUP go to the channel that it returns, and end nothing any more; nil where it
	// always ends the process.
	hangups func() <-chan os.Signal

	// Set by run.
	args      []string
	commands  *commands
	variables map[*kong.Flag]string // of the environment, which stand in for flags
	sources   sources               // of the flags of a server
	contexts  *contexts             // nil without a context
	context   string                // its name
	stop      <-chan struct{}       // closed when the command is to end
	long      io.Writer             // standard output for long results: closing stop ends a write
	keyboard  *os.File              // standard input, nil if it is no file
}

// run carries out a command line, without the program's name, and returns the exit code. When ctx
// ends, a server drains and any other command stops.
func (p *program) run(ctx context.Context, args []string) int {
	p.stop = ctx.Done()
	if file, ok := p.stdin.(*os.File); ok {
		p.keyboard = file
		p.stdin = interruptibleFile(file, p.stop)
	}
	p.long = p.stdout
	if file, ok := p.stdout.(*os.File); ok {
		p.long = interruptibleFile(file, p.stop)
	}
	help := p.stdout // the file itself: the parser asks for the width of the terminal
	p.stdout = &sink{w: p.stdout}
	if len(args) > 0 && args[0] == "--version" { // as a flag, each command would have it
		args = append([]string{"version"}, args[1:]...)
	}
	helped := false
	parser, err := p.parser(ctx, asHelp(args), help, &helped)
	if err != nil {
		return p.report(err, exitFailed)
	}
	if line, _ := p.env("COMP_LINE"); line != "" { // a shell asks how it may go on
		kongcompletion.Register(parser, p.predictors(ctx, parser.Model.Node)...)
		return exitOK
	}
	parsed, err := p.parse(parser)
	var inFile configError
	switch {
	case helped: // the parser goes on after it has printed the help
		return exitOK
	case errors.As(err, &inFile):
		return p.report(inFile, exitFailed)
	case errors.Is(err, syscall.EPIPE): // "head" has seen enough of the help
		return exitFailed
	case err != nil:
		return p.report(fmt.Errorf("%w; see %s --help", err, commandOf(err)), exitUsage)
	}
	err = nameQueue(parsed, parsed.Run())
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNothing), errors.Is(err, client.ErrNoQueue), errors.Is(err, client.ErrNoPacket):
		return p.report(err, exitNothing)
	case errors.Is(err, client.ErrStale):
		return p.report(err, exitStale)
	case errors.Is(err, errNotChecked):
		return p.report(err, exitNotChecked)
	case errors.Is(err, errNotConfirmed), errors.As(err, new(usageError)):
		return p.report(err, exitUsage)
	case errors.Is(err, errReaderGone):
		return exitFailed
	}
	return p.report(err, exitFailed)
}

// parser makes the parser of a command line.
func (p *program) parser(ctx context.Context, args []string, help io.Writer, helped *bool) (*kong.Kong, error) {
	p.args, p.commands = args, &commands{}
	p.sources = sources{given: make(map[string]bool)}
	parser, err := kong.New(p.commands, append(decoders(),
		kong.Name("holdfast"),
		kong.Description(description),
		kong.Writers(help, p.stderr),
		kong.Exit(func(int) { *helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.ValueFormatter(p.helpWithVariable),
		kong.Help(printHelp),
		kong.WithBeforeResolve(p.loadConfig),
		kong.WithAfterApply(refuseEmpty),
		// The last that has a value counts.
		kong.Resolvers(kong.ResolverFunc(p.inContext), kong.ResolverFunc(p.sources.inFile), kong.ResolverFunc(p.variable)),
		kong.Bind(p),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.IgnoreFields(p.unneeded()),
	)...)
	if err == nil {
		p.variables = variables(parser.Model.Node, false)
	}
	return parser, err
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
	if line, _ := p.env("COMP_LINE"); !named || p.args[0] == "man" || line != "" {
		return `^$` // which no field matches: all are told of
	}
	return `^commands\.(` + strings.Join(others, "|") + `)$`
}

// parse reads the command line. The error is a configError if it is about the config file.
func (p *program) parse(parser *kong.Kong) (*kong.Context, error) {
	parsed, err := parser.Parse(p.args)
	if err != nil {
		err = worded(p.locate(err), p.args, parser.Model.Node)
	}
	return parsed, err
}

// readServe returns what a server would run with.
func (p *program) readServe(ctx context.Context, args []string) (daemon.Config, error) {
	parser, err := p.parser(ctx, args, io.Discard, new(bool))
	if err != nil {
		return daemon.Config{}, err
	}
	if _, err := p.parse(parser); err != nil {
		return daemon.Config{}, err
	}
	config, err := p.serverConfig(&p.commands.Serve)
	if err != nil {
		err = p.locate(err)
	}
	return config, err
}

// report prints an error, and what to do about it, on one line.
func (p *program) report(err error, code int) int {
	text := oneLine(err)
	if errors.Is(err, context.Canceled) {
		text = strings.Replace(text, context.Canceled.Error(), "interrupted", 1)
	}
	if do := remedyOf(err); do != "" {
		text = strings.TrimSuffix(text, ".") + "; " + do
	}
	fmt.Fprintln(p.stderr, "holdfast: "+legible(text))
	return code
}

// oneLine is the first line of an error, and the number of the others. The error of a damaged
// folder has a line for each table.
func oneLine(err error) string {
	first, rest, more := strings.Cut(err.Error(), "\n")
	if !more {
		return first
	}
	return fmt.Sprintf("%s (and %d more)", first, 1+strings.Count(rest, "\n"))
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

// errNothing means that a queue has nothing to select.
var errNothing = errors.New("nothing")
