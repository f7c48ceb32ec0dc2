package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/barbershop"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// exportCmd writes the items of a board as a snapshot.
type exportCmd struct {
	File    string        `arg:"" help:"Snapshot to write; - is standard output. It gets its name when it is whole and on disk, and takes the place of an older one then."`
	Queue   string        `name:"barbershop-queue" default:"barbershop" placeholder:"NAME" help:"Queue that is the board (default ${default})."`
	Admin   string        `default:"127.0.0.1:7072" placeholder:"HOST:PORT" help:"Address of the server's operator port (default ${default})."`
	Timeout time.Duration `default:"30s" placeholder:"TIME" help:"How long to wait for the server to go on (default ${default})."`

	progress
}

// Help is shown below the usage line.
func (c *exportCmd) Help() string {
	return `Writes the items as they were at one moment, while the server goes on: the highest score first, and within a score the item that is there longest, which is the order in which "next" hands them out. Packets of the queue that are no items (they came through another door, with a payload or under another key) are left out; then the exit code is 1.

Examples:

    holdfast barbershop export barbershop.snapshot
    holdfast barbershop export - | head`
}

// Validate is called with the parsed flags.
func (c *exportCmd) Validate() error {
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout %v: expected a time such as 30s", c.Timeout)
	}
	return nil
}

// Run exports, and returns nil once the snapshot is whole.
func (c *exportCmd) Run(ctx context.Context, p *program) error {
	body, err := fetch(ctx, c.Admin, c.Timeout, admin.Request{Format: admin.FormatMsgpack, Queues: []string{literal(c.Queue)}})
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer body.Close()
	o, err := p.create(c.File)
	if err != nil {
		return err
	}
	defer o.discard()
	m := p.meter(c.Quiet)
	defer m.end()
	e := exporting{out: o, report: func(items int64) { m.set("export", inPackets, items, 0) }}
	err = e.run(ctx, body)
	m.end()
	switch {
	case ctx.Err() != nil:
		return errors.New("export: interrupted; " + o.left())
	case err != nil:
		return fmt.Errorf("export: %w; %s", err, o.left())
	}
	if err := o.keep(); err != nil {
		return err
	}
	if e.foreign > 0 {
		return fmt.Errorf("export: %d packets of queue %q are no items and were left out, the first of them packet %v; all items were written",
			e.foreign, c.Queue, e.first)
	}
	return nil
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
	foreign int64            // packets that are no items
	first   storage.PacketID // of them
	line    []byte
}

// run reads a dump, which is in the order of the board already.
func (e *exporting) run(ctx context.Context, dump io.Reader) error {
	_, err := recovery.ReadDump(ctx, dump, recovery.ReadOptions{Packet: e.packet})
	return err
}

func (e *exporting) packet(_ *storage.Queue, id storage.PacketID, p *storage.Packet) error {
	item, ok := barbershop.ParseKey(p.Key)
	if !ok || id.Priority == 0 || len(p.Payload) > 0 || len(p.Tags) > 0 || p.Expiry != 0 || p.NotBefore != 0 {
		if e.foreign++; e.foreign == 1 {
			e.first = id
		}
		return nil
	}
	e.line = append(barbershop.AppendKey(e.line[:0], item), ' ')
	e.line = append(strconv.AppendUint(e.line, uint64(barbershop.Score(id.Priority)), 10), '\n')
	if e.items++; e.items%1024 == 0 {
		e.report(e.items)
	}
	_, err := e.out.Write(e.line)
	return err
}
