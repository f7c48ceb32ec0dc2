package ask

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// maxCount is the most packets of one request.
const maxCount = 1000

// pushLines pushes each line of standard input. A request takes the lines that have come by then.
// An error says how many are on disk.
func (c *Push) pushLines(ctx context.Context, p *terminal.Process) error {
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

// readLine reads a line with its end; if it has far more bytes than longest, the error is
// bufio.ErrBufferFull. The line is valid until the next read.
func readLine(in *bufio.Reader, longest int) (line []byte, err error) {
	line, err = in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line)
	}
	for errors.Is(err, bufio.ErrBufferFull) && len(line) <= longest {
		var part []byte
		part, err = in.ReadSlice('\n')
		line = append(line, part...)
	}
	return line, err
}

// readLines waits for a line, and takes with it the whole lines that are there already, without
// their ends. An error says why there is none behind them: bufio.ErrBufferFull if it is too long.
func readLines(in *bufio.Reader, most, longest int) (lines [][]byte, err error) {
	for more := true; more && err == nil && len(lines) < most; {
		var line []byte
		line, err = readLine(in, longest)
		if err == nil || errors.Is(err, io.EOF) && len(line) > 0 {
			lines = append(lines, bytes.Clone(bytes.TrimSuffix(line, []byte("\n"))))
		}
		ready, _ := in.Peek(in.Buffered())
		more = bytes.IndexByte(ready, '\n') >= 0
	}
	return lines, err
}
