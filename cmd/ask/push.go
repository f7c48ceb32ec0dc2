package ask

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Push pushes one packet.
type Push struct {
	Queue    string         `arg:"" predictor:"queue" help:"Queue to push to. The first push makes it."`
	Payload  string         `arg:"" default:"-" help:"Payload, at most what --max-payload of the server says. If it is - or missing, standard input is read, which must not be empty."`
	Key      *string        `placeholder:"KEY" help:"Key of the packet (default: none). Packets of one key can be taken together. An empty KEY is a key like any other."`
	Priority int64          `word:"PRIO" default:"128" range:"0 4294967295" placeholder:"N" help:"Priority: 1 is best. A packet of priority 0 is never selected: it leaves with a selected packet of its key, or when its TTL ends (default ${default})."`
	TTL      time.Duration  `default:"0s" placeholder:"TIME" help:"Time to live; 0 never expires (default ${default})."`
	Delay    time.Duration  `default:"0s" placeholder:"TIME" help:"How long the packet waits before it can be taken (default ${default})."`
	At       time.Time      `placeholder:"TIME" help:"When it can be taken, such as 2026-12-01T08:00, which is local time, 2026-12-01T08:00Z or 2026-12-01T08:00+02:00."`
	Tag      []string       `placeholder:"NAME=VALUE" sep:"none" help:"Tag, by which consumers can select. May be given more than once."`
	Producer string         `placeholder:"NAME" help:"Name of who pushes, which show prints."`
	Lease    time.Duration  `range:"1ms" placeholder:"TIME" help:"How long a claim of the packet lasts that does not say (default: what the queue says)."`
	Meta     string         `placeholder:"TEXT" help:"What goes with the packet beside its payload, at most 4096 bytes; show prints it."`
	Unique   *string        `placeholder:"ID" help:"Add nothing if the queue has an unfinished packet that was pushed with this ID, or within --window had one."`
	Window   time.Duration  `range:"1ms" placeholder:"TIME" help:"How long the ID of --unique stands for the first packet, even if that is finished."`
	Until    string         `enum:"claim,end" default:"end" placeholder:"WHEN" help:"When the ID of --unique is free: end, when its packet is finished, or claim, when work on it begins (default ${default})."`
	Replace  bool           `help:"If the packet that has the ID of --unique waits, give it this payload, these tags, producer and TTL, and with --delay or --at another moment."`
	Tell     bool           `help:"Print what became of a push with --unique: new, replaced, or the state of the packet that has the ID."`
	Block    *time.Duration `placeholder:"TIME" help:"How long to wait for room in a queue that is full or paused; 0s waits without end (default: do not wait, or in a queue with full=block, wait as long as --timeout)."`
	ID       bool           `name:"id" help:"Print the id of the packet, or with --unique that of the first one."`
	Lines    bool           `help:"Push each line of standard input as a packet, many in one request. An empty line is an empty packet."`

	terminal.Progress
	connection.WorkQueue
}

func (c *Push) Help() string {
	return `Returns with exit code 0 once the packet is on the server's disk. (A server with --sync other than always answers before that.) If --lines fails, the error says how many lines are on disk.

Examples:

    holdfast push jobs hello
    holdfast push jobs "rotate logs" --priority 1 --ttl 30s
    holdfast push jobs --key order-17 < order.json
    holdfast push mails --delay 10m --tag class=low --unique welcome-17 "to ann"
    holdfast push mails --at 2026-12-01T08:00 "to bob"
    printf 'no newline' | holdfast push jobs -
    tail -n +2001 urls.txt | holdfast push urls --lines
    holdfast push jobs -- -begins-with-a-dash`
}

// checkPairs refuses what is not NAME=VALUE.
func checkPairs(what string, pairs []string) error {
	for _, pair := range pairs {
		if strings.Index(pair, "=") < 1 {
			return fmt.Errorf("%s %q: expected NAME=VALUE", what, pair)
		}
	}
	return nil
}

func (c *Push) Validate() error {
	switch {
	case c.Window != 0 && c.Unique == nil:
		return errors.New("--window: expected --unique with it")
	case c.Until != "end" && (c.Unique == nil || c.Window != 0):
		return errors.New("--until: expected --unique with it, and no --window")
	case (c.Replace || c.Tell) && c.Unique == nil:
		return errors.New("--replace and --tell: expected --unique with them")
	case c.Delay != 0 && !c.At.IsZero():
		return errors.New("--delay and --at: expected one of them")
	case c.Lines && (c.Payload != "-" || c.Unique != nil):
		return errors.New("--lines: expected neither a payload nor --unique with it")
	case c.Priority == 0 && c.Key == nil:
		return errors.New("--priority 0: expected --key with it, as such a packet goes only with others of its key")
	}
	return checkPairs("--tag", c.Tag)
}

// Run pushes, and returns nil once the packet is on disk.
func (c *Push) Run(ctx context.Context, p *terminal.Process) error {
	if c.Lines {
		return c.pushLines(ctx, p)
	}
	payload, err := c.payload(p)
	if err != nil {
		return err
	}
	return c.Call(ctx, func(ctx context.Context, server *client.Client) error {
		if !c.Tell {
			id, err := server.Push(ctx, c.Queue, payload, c.options()...)
			if err == nil && c.ID {
				_, err = fmt.Fprintln(p.Stdout, id)
			}
			return err
		}
		id, told, err := server.PushTold(ctx, c.Queue, payload, c.options()...)
		if c.ID {
			told = id + " " + told
		}
		if err == nil {
			_, err = fmt.Fprintln(p.Stdout, told)
		}
		return err
	})
}

func (c *Push) options() []client.Option {
	var tags []client.Option
	for _, tag := range c.Tag {
		name, value, _ := strings.Cut(tag, "=")
		tags = append(tags, client.Tag(name, value))
	}
	return slices.Concat(
		when(true, client.Priority(uint32(c.Priority))), given(c.Key, client.Key), unlessZero(c.TTL, client.TTL),
		unlessZero(c.Delay, client.Delay), when(!c.At.IsZero(), client.At(c.At)), tags, unlessZero(c.Producer, client.Producer),
		unlessZero(c.Lease, client.Lease), when(c.Meta != "", client.Meta([]byte(c.Meta))),
		given(c.Unique, client.Unique), // an empty one is refused: it is a script whose variable is not set
		unlessZero(c.Window, client.Window), when(c.Until == "claim", client.UntilClaim()), when(c.Replace, client.Replace()), given(c.Block, client.Block),
	)
}

func (c *Push) payload(p *terminal.Process) ([]byte, error) {
	if c.Payload != "-" {
		return []byte(c.Payload), nil
	}
	p.Reads("the payload")
	payload, err := io.ReadAll(io.LimitReader(p.Stdin, int64(config.MaxPayload)+1))
	if err != nil {
		return nil, fmt.Errorf("read the payload from standard input: %w", err)
	}
	if len(payload) == 0 {
		return nil, errors.New(`standard input is empty, and nothing was pushed: holdfast push QUEUE "" pushes an empty packet`)
	}
	if len(payload) > int(config.MaxPayload) {
		return nil, fmt.Errorf("standard input is too long for one packet: no server takes more than %v", config.MaxPayload)
	}
	return payload, nil
}

// maxCount is the most packets of one request.
const maxCount = 1000

// pushLines pushes each line of standard input. A request takes the lines that have come by then.
// An error says how many are on disk.
func (c *Push) pushLines(ctx context.Context, p *terminal.Process) error {
	p.Reads("lines")
	m, done, more := p.Meter(c.Quiet), 0, "no"
	err := c.Call(ctx, func(ctx context.Context, server *client.Client) error {
		in, most := bufio.NewReaderSize(p.Stdin, window), maxCount
		for {
			lines, end := readLines(in, maxCount, int(config.MaxPayload))
			for len(lines) > 0 {
				batch := lines[:min(most, len(lines))]
				ids, err := server.PushBatch(ctx, c.Queue, batch, c.options()...)
				switch {
				case len(batch) > 1 && (errors.Is(err, client.ErrTooLarge) || errors.Is(err, client.ErrFull) && c.Block == nil):
					most = len(batch) / 2 // nothing was pushed: perhaps some of them fit
					continue
				case errors.Is(err, client.ErrUnknown):
					more = fmt.Sprintf("perhaps %d", len(batch))
				}
				if err != nil {
					return err
				}
				done += len(batch)
				lines = lines[len(batch):]
				m.Set("push", terminal.InPackets, int64(done), 0)
				if c.ID {
					if _, err := fmt.Fprintln(p.Stdout, strings.Join(ids, "\n")); err != nil {
						return err
					}
				}
			}
			switch {
			case errors.Is(end, io.EOF):
				return nil
			case errors.Is(end, bufio.ErrBufferFull):
				return fmt.Errorf("the next line is too long for a packet: no server takes more than %v", config.MaxPayload)
			case end != nil:
				return end
			}
		}
	})
	m.End()
	if err != nil {
		return fmt.Errorf("on disk are the first %s, and %s more: %w", terminal.Plural(done, "line"), more, err)
	}
	return nil
}
