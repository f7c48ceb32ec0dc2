package ask

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Work runs a command for each packet.
type Work struct {
	Queue       string        `arg:"" predictor:"queue" help:"Queue to work on."`
	Or          []string      `sep:"none" predictor:"queue" placeholder:"QUEUE" help:"Another queue, for when those before have no packet. May be given more than once."`
	Command     []string      `arg:"" help:"Command to run, with its arguments. Put -- before it if it has flags."`
	Concurrency int           `default:"1" range:"1 65536" placeholder:"N" help:"How many commands run at a time (default ${default})."`
	Lease       time.Duration `default:"30s" range:"1s 3650d" placeholder:"TIME" help:"How soon a packet goes to another worker if this one is gone. It is renewed while the command runs (default ${default})."`
	Limit       time.Duration `placeholder:"TIME" help:"End a command that runs longer: it failed then (default: never)."`
	Burst       bool          `help:"End when there is nothing to claim and no command runs: for cron."`
	Consumer    string        `placeholder:"NAME" help:"Name of who claims, which list and show print (default: a name of this process)."`

	selection
	connection.WorkQueue
}

func (c *Work) Help() string {
	return `The command gets the payload on its standard input. Exit code 0 acknowledges the packet. Anything else returns it to the queue, which has it tried again after a pause, up to max-attempts times. The reason says how the command ended and what it wrote last to standard error, such as "exit 7: no route to host".

What is known of the packet is in the environment: HOLDFAST_PACKET_QUEUE, _ID, _TOKEN, _ATTEMPT and _PRIORITY, and where there is one HOLDFAST_PACKET_KEY, _PRODUCER and a HOLDFAST_PACKET_TAG_NAME for the tag "name". Whatever is no letter or digit in the name becomes an underscore. HOLDFAST_REDIS is the address of the server, so a command can call this program without --redis or a password.

After a signal it claims no more, says how many commands run, and lets them end. A second signal ends them: their packets go to others when the leases end. The exit code is 0 then, as it is when the queues are closed and drained, or have nothing to claim with --burst. While the server refuses claims, as its memory is nearly full, a burst waits, too. It is 1 when the command cannot be started, or nobody reads its output any more: no other packet is tried then. A command whose lease is lost or whose packet is cancelled is ended, as is one past its limit: its process group gets SIGTERM, and 5s later SIGKILL.

Examples:

    holdfast work mails -- sendmail -t
    holdfast work thumbnails --concurrency 4 --limit 10m -- ./thumbnail.sh
    holdfast work urgent --or mails --burst -- sendmail -t
    holdfast work tasks --filter 'performance_class<=high' -- ./node.sh
    holdfast work words -- sh -c 'tr a-z A-Z | holdfast push upper'`
}

// Run works until ctx ends, or the queues are drained, or empty in a burst.
func (c *Work) Run(ctx context.Context, p *terminal.Process, s *config.Sources) error {
	path, err := exec.LookPath(c.Command[0])
	if err != nil {
		return fmt.Errorf("nothing was claimed: %w", err)
	}
	lasting := context.WithoutCancel(ctx) // what runs is answered for, also after a signal
	server, err := c.Connect(lasting)
	if err != nil {
		return err
	}
	defer server.Close()
	err = c.Call(ctx, func(ctx context.Context, server *client.Client) error {
		_, err := server.Len(ctx, c.Queue) // a worker would wait for a server that is away
		return err
	})
	if err != nil {
		return err
	}
	stderr := &shared{w: p.Stderr}
	server.Logger = slog.New(slog.NewTextHandler(stderr, nil))
	t := task{server: append(c.Variables(), "HOLDFAST_CONTEXT="+s.Context), path: path, args: c.Command, limit: c.Limit, grace: grace, stdout: &shared{w: p.Stdout}, stderr: stderr}
	p.AtEnd.Store(func() { t.signal(syscall.SIGTERM) })
	t.useful, t.useless = context.WithCancelCause(lasting)
	defer t.useless(nil)
	said := make(chan struct{})
	unsaid := context.AfterFunc(ctx, func() {
		defer close(said)
		server.StopClaiming() // before the word: a command that ends when it comes would claim once more
		if n := t.signal(0); n > 0 {
			fmt.Fprintf(stderr, "holdfast: waiting for %s to end; a second Ctrl-C ends what still runs\n", terminal.Plural(n, "command"))
		}
	})
	defer func() {
		if !unsaid() {
			<-said // the output is the caller's again
		}
	}()
	for _, end := range []context.Context{ctx, t.useful} {
		defer context.AfterFunc(end, func() { _ = server.Shutdown(lasting) })()
	}
	err = server.Consume(lasting, c.Queue, t.run, c.options()...)
	return cmp.Or(c.Explain(lasting, err), context.Cause(t.useful))
}

// grace is how long a command has from SIGTERM to SIGKILL.
const grace = 5 * time.Second

func (c *Work) options() []client.Option {
	all := append(c.selection.options(), client.Concurrency(c.Concurrency), client.Lease(c.Lease), client.Or(c.Or...))
	all = append(all, when(c.Burst, client.Burst())...)
	return append(all, unlessZero(c.Consumer, client.As)...)
}
