package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// pushLines pushes each line of standard input. A request takes the lines that have come by then.
func (c *pushCmd) pushLines(ctx context.Context, p *program) error {
	server, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	m := p.meter(c.Quiet)
	defer m.end()
	in, done := bufio.NewReaderSize(p.stdin, maxPayload+1), 0
	for {
		lines, end := readLines(in)
		ids, err := c.pushBatch(ctx, server, lines)
		done += len(ids)
		m.set("push", inPackets, int64(done), 0)
		if c.ID && len(ids) > 0 {
			if _, err := fmt.Fprintln(p.stdout, strings.Join(ids, "\n")); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, client.ErrUnknown):
			return fmt.Errorf("on disk are the first %s, and perhaps %d more: %w", plural(done, "line"), len(lines)-len(ids), c.explain(ctx, err))
		case err != nil:
			return fmt.Errorf("on disk are the first %s, and no more: %w", plural(done, "line"), c.explain(ctx, err))
		case errors.Is(end, bufio.ErrBufferFull):
			return fmt.Errorf("on disk are the first %s, and no more: the next line is too long for a packet: at most %d bytes", plural(done, "line"), maxPayload)
		case end != nil && !errors.Is(end, io.EOF):
			return fmt.Errorf("on disk are the first %s, and no more: read standard input: %w", plural(done, "line"), end)
		case end != nil:
			return nil
		}
	}
}

// readLines waits for a line, and takes with it the whole lines that are there already. An error
// says why there is none behind them.
func readLines(in *bufio.Reader) (lines [][]byte, err error) {
	for more := true; more && err == nil && len(lines) < maxCount; {
		var line []byte
		line, err = in.ReadSlice('\n')
		if err == nil || errors.Is(err, io.EOF) && len(line) > 0 {
			lines = append(lines, bytes.Clone(bytes.TrimSuffix(line, []byte("\n"))))
		}
		ready, _ := in.Peek(in.Buffered())
		more = bytes.IndexByte(ready, '\n') >= 0
	}
	return lines, err
}

// pushBatch pushes lines and returns the ids of those that are on disk, which are the first ones. If
// the server refuses them together, as many as it takes go.
func (c *pushCmd) pushBatch(ctx context.Context, server *client.Client, lines [][]byte) ([]string, error) {
	ids, err := server.PushBatch(ctx, c.Queue, lines, c.options()...)
	half := len(lines) / 2
	if half == 0 || !errors.Is(err, client.ErrTooLarge) && !(errors.Is(err, client.ErrFull) && c.Block == nil) {
		return ids, err
	}
	if ids, err = c.pushBatch(ctx, server, lines[:half]); err != nil {
		return ids, err
	}
	more, err := c.pushBatch(ctx, server, lines[half:])
	return append(ids, more...), err
}
