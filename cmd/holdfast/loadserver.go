package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/load"
)

// toServer loads a file into a running server.
func (c *loadCmd) toServer(ctx context.Context, p *program) error {
	if err := dump.CheckPatterns(c.Queue); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	in, err := p.input(c.File)
	if err != nil {
		return err
	}
	defer in.close()
	file, ok := in.Reader.(io.Seeker)
	if !ok {
		return fmt.Errorf("load: %s is no regular file, which can be read twice: to be checked, and to be loaded", c.File)
	}
	server, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	m := p.meter(c.Quiet)
	defer m.end()
	began := time.Now()
	l := &serverLoad{
		loadTarget: loadTarget{queues: c.Queue, to: c.ToQueue, db: c.DB},
		conn:       server.Redis().Conn(), now: began.UnixMilli(),
		progress: func(loaded, total int64) { m.set("load", inPackets, loaded, total) },
	}
	defer l.conn.Close()
	if err := c.loadInto(ctx, l, in, file, m); err != nil {
		return err
	}
	m.end()
	r := load.Report{Packets: l.mark.Packets, Queues: l.mark.Queues, Keys: l.mark.Keys, Taken: l.mark.Taken, Expired: l.mark.Expired, Took: time.Since(began)}
	if err := c.print(p.stdout, &r); err != nil {
		return err
	}
	if l.mark.Refused > 0 {
		return fmt.Errorf("load: the server has refused %s on the way: what they were about is missing", plural(l.mark.Refused, "command"))
	}
	return nil
}

// loadInto reads the file twice. An error says how much is loaded.
func (c *loadCmd) loadInto(ctx context.Context, l *serverLoad, in *input, file io.Seeker, m *meter) error {
	err := l.check(ctx, in, func(at dump.Progress) { m.set("check", inBytes, at.Bytes, in.size) })
	if err == nil {
		err = l.begin(ctx, c.Again)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return c.failed(ctx, err, "nothing was loaded")
	}
	before := l.mark.Packets
	if err = l.run(ctx, in); err == nil {
		return nil
	}
	state := fmt.Sprintf("%d of about %s are loaded", l.mark.Packets, plural(l.count.Packets, "packet"))
	if before > 0 {
		state += fmt.Sprintf(", %d of them before", before)
	}
	return c.failed(ctx, err, state+": run the same command again, and it goes on behind them")
}

// failed is an error of the server or of the file, and what came of the load.
func (c *loadCmd) failed(ctx context.Context, err error, state string) error {
	switch {
	case redis.HasErrorPrefix(err, "NOPERM"):
		state += "; the user needs push and manage for all that is loaded, and with look for " + loadNotes + "*"
	case redis.HasErrorPrefix(err, "too large"):
		state += "; " + remedyOf(client.ErrTooLarge)
	case errors.Is(err, errMaybe):
		state += ", or behind the batch that was under way"
	case errors.Is(err, errLoaded):
		return fmt.Errorf("load: %w", err)
	}
	return fmt.Errorf("load: %w; %s", c.explain(ctx, err), state)
}
