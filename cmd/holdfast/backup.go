package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/recovery/dump"
)

// backupCmd copies a running server's store.
type backupCmd struct {
	To     string   `required:"" placeholder:"FILE" help:"File to write, or - for standard output. It gets its name when it is whole and on disk; until then an older file stays."`
	Queue  []string `pattern:"" placeholder:"GLOB" sep:"none" help:"Only queues whose name matches: * is anything, ? one character, [a-z] one of a set. May be given more than once (default: all)."`
	Format string   `enum:"msgpack,jsonl" default:"msgpack" placeholder:"FORMAT" help:"msgpack or jsonl (default ${default})."`

	operatorPort
	progress
}

func (c *backupCmd) Help() string {
	return `Streams a consistent copy out of a running server: all that was on disk at one moment. The server goes on meanwhile. "holdfast load" makes a data folder from the copy. Exit code 0 means that the copy is whole: every record was read, and the hash matched.

Examples:

    holdfast backup --to holdfast.backup
    holdfast backup --to jobs.jsonl --format jsonl --queue 'jobs.*'
    holdfast backup --to - | gzip > holdfast.backup.gz`
}

// Run copies, and returns nil once the copy is whole and on disk.
func (c *backupCmd) Run(ctx context.Context, p *program) error {
	body, err := c.fetch(ctx, admin.Request{Format: c.Format, Queues: c.Queue})
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer body.Close()
	o, err := p.create(c.To)
	if err != nil {
		return err
	}
	defer o.discard()
	m := p.meter(c.Quiet)
	defer m.end()
	_, err = dump.Read(ctx, io.TeeReader(body, o), nil, func(at dump.Progress) {
		m.set("backup", inPackets, at.Packets, body.Packets)
	})
	m.end()
	switch {
	case ctx.Err() != nil:
		return errors.New("backup: interrupted; " + o.left())
	case err != nil:
		return fmt.Errorf("backup: %w; %s", o.cause(err), o.left())
	}
	return o.keep()
}
