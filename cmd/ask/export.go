package ask

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/barbershop"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// exportCmd writes the items of a board as a snapshot.
type exportCmd struct {
	File  string `arg:"" help:"File to write, or - for standard output. It gets its name when it is whole and on disk; until then an older file stays."`
	Queue string `name:"barbershop-queue" default:"barbershop" placeholder:"NAME" help:"Queue that is the board (default ${default})."`

	connection.Operator
	terminal.Progress
}

func (c *exportCmd) Help() string {
	return `Writes the items as they were at one moment, in the order in which "next" takes them: the highest score first, and the oldest of equal scores. The server goes on meanwhile.

Packets of the queue that are not items are left out, and the exit code is then 1: packets with a payload, with another key than an item's number, those that are delayed, claimed, dead or done, and all but the best packet of one item. A server makes one copy at a time: it refuses an export during a backup, and the other way round.

Examples:

    holdfast barbershop export barbershop.snapshot
    holdfast barbershop export - | head
    holdfast barbershop export board.snapshot --barbershop-queue board --admin 127.0.0.1:7073`
}

// Run exports, and returns nil once the snapshot is whole.
func (c *exportCmd) Run(ctx context.Context, p *terminal.Process) error {
	body, err := c.Fetch(ctx, admin.Request{Format: admin.FormatMsgpack, Queues: []string{literal(c.Queue)}})
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer body.Close()
	o, err := p.Create(c.File)
	if err != nil {
		return err
	}
	defer o.Discard()
	m := p.Meter(c.Quiet)
	defer m.End()
	e := exporting{out: o, written: make(map[uint32]bool), report: func(items int64) { m.Set("export", terminal.InPackets, items, 0) }}
	report, err := dump.Read(ctx, body, func(r *dump.Record) error {
		if r.Type != dump.TypePacket {
			return nil
		}
		return e.packet(r.Packet())
	}, nil)
	m.End()
	if report.Queues == 0 && err == nil && ctx.Err() == nil {
		return fmt.Errorf("export: the server has no queue %q, or has dropped it because it is empty: check --barbershop-queue; nothing was written", c.Queue)
	}
	if err := o.End(ctx, "export", err); err != nil {
		return err
	}
	if e.leftOut > 0 {
		return fmt.Errorf("export: %s exported; left out of queue %q: %s that are no items on the board or not the best of one, beginning with packet %v",
			terminal.Plural(e.items, "item"), c.Queue, terminal.Plural(e.leftOut, "packet"), e.first)
	}
	if c.File == "-" {
		_, err = fmt.Fprintf(p.Stderr, "holdfast: %s exported\n", terminal.Plural(e.items, "item"))
	} else {
		_, err = fmt.Fprintf(p.Stdout, "%s exported\n", terminal.Plural(e.items, "item"))
	}
	return err
}

// literal is the pattern that matches one name only.
func literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// exporting is one export under way.
type exporting struct {
	out    io.Writer
	report func(items int64)

	items   int64
	written map[uint32]bool
	leftOut int64            // packets that are not items, or not the best packet of one
	first   content.PacketID // of those
	line    []byte
}

// packet gets the packets of a dump, whose order is that of the board.
func (e *exporting) packet(id content.PacketID, p *content.Packet, d *dump.Delivery) error {
	item, ok := barbershop.ParseKey(p.Key)
	more := len(p.Payload) > 0 || len(p.Tags) > 0 || p.Producer != "" || len(p.Unique) > 0 || p.Expiry != 0 || p.NotBefore != 0 ||
		d != nil && d.State != content.Ready
	if !ok || more || id.Priority == 0 || e.written[item] {
		if e.leftOut++; e.leftOut == 1 {
			e.first = id
		}
		return nil
	}
	e.written[item] = true
	e.line = append(barbershop.AppendKey(e.line[:0], item), ' ')
	e.line = append(strconv.AppendUint(e.line, uint64(barbershop.Score(id.Priority)), 10), '\n')
	if e.items++; e.items%1024 == 0 {
		e.report(e.items)
	}
	_, err := e.out.Write(e.line)
	return err
}
