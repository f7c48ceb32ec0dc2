package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// importCmd sends a snapshot as updates.
type importCmd struct {
	File       string        `arg:"" help:"Snapshot to read, or - for standard input."`
	Barbershop string        `default:"127.0.0.1:8002" address:"127.0.0.1:8002" placeholder:"HOST:PORT" help:"Address of the server (default ${default})."`
	Timeout    time.Duration `default:"30s" range:"1ms 3650d" placeholder:"TIME" help:"How long to wait for the next reply (default ${default})."`

	progress
}

func (c *importCmd) Help() string {
	return `Sends each line as an update: it puts a new item on the board with that score, and adds the score to that of an item which is there. So a second import of the same file doubles the scores. Blank lines are skipped. The command returns when every line is on the server's disk. When it stops before, it says which lines are imported.

Examples:

    holdfast barbershop import barbershop.snapshot
    tail -n +1001 barbershop.snapshot | holdfast barbershop import -
    holdfast barbershop import barbershop.snapshot --barbershop 127.0.0.1:8003`
}

// Run imports, and returns nil once all lines are on the server's disk.
func (c *importCmd) Run(ctx context.Context, p *program) error {
	file, err := p.input(c.File)
	if err != nil {
		return err
	}
	defer file.close()
	// A server of another protocol would make something else of the lines, so it is asked first
	// what it is.
	if _, err := countItems(ctx, c.Barbershop, c.Timeout); err != nil {
		return fmt.Errorf("%w; nothing is imported", err)
	}
	conn, err := dial(ctx, c.Barbershop, "--barbershop", c.Timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	m := p.meter(c.Quiet)
	defer m.end()
	i := newImporting(conn, c.Timeout)
	i.report = func(read int64) { m.set("import", inBytes, read, file.size) }
	err = i.run(ctx, file.Reader)
	m.end()
	if err != nil {
		return fmt.Errorf("%w; %s", err, i.state())
	}
	_, err = fmt.Fprintf(p.stdout, "%s imported\n", plural(i.sent, "line"))
	return err
}

// maxLine is far longer than a line with two numbers.
const maxLine = 128

// maxInFlight is how many updates may be without a reply. It is more than the send buffer holds, so
// that the sender never waits for the reply to an update that it has not sent.
const maxInFlight = 1 << 16

// importing is one import under way. One goroutine sends and another reads the replies: if one did
// both, it could wait for a server that waits for it.
type importing struct {
	conn    *net.TCPConn
	timeout time.Duration
	report  func(read int64) // bytes of the snapshot

	lines  chan int64  // line numbers of the updates in flight; the sender adds, the reader takes
	failed atomic.Bool // set by the reader: there is no point in sending more

	sent int64 // updates; owned by the sender
	last int64 // line of the last of them

	// Owned by the reader until it has ended.
	imported int64 // line of the last update before the first that failed
	unknown  bool  // some update after imported may have been carried out
}

func newImporting(conn *net.TCPConn, timeout time.Duration) *importing {
	return &importing{conn: conn, timeout: timeout, lines: make(chan int64, maxInFlight)}
}

// run sends updates until the snapshot ends, a line is wrong, the server refuses one, or ctx ends.
// It returns when every update has its reply or can get none.
func (i *importing) run(ctx context.Context, snapshot io.Reader) error {
	replies := make(chan error, 1)
	go func() { replies <- i.read() }() // ends after the sender, or when the server fails
	err := i.send(ctx, snapshot)
	close(i.lines)
	if replyErr := <-replies; replyErr != nil { // it explains why sending failed, if it did
		return replyErr
	}
	return err
}

// flushFirst reads a snapshot. Before it waits for more of it, it sends the updates that it has.
type flushFirst struct {
	snapshot io.Reader
	updates  *bufio.Writer
}

// Read implements io.Reader.
func (f flushFirst) Read(p []byte) (int, error) {
	if err := f.updates.Flush(); err != nil {
		return 0, fmt.Errorf("send updates: %w", err)
	}
	return f.snapshot.Read(p)
}

// send turns lines into updates. It sends those before a wrong line, too.
func (i *importing) send(ctx context.Context, snapshot io.Reader) (err error) {
	out := bufio.NewWriterSize(i.conn, 64<<10)
	in := bufio.NewReaderSize(flushFirst{snapshot, out}, 64<<10)
	defer func() {
		if e := out.Flush(); err == nil && e != nil {
			err = fmt.Errorf("send updates: %w", e)
		}
	}()
	var read, line int64
	for !i.failed.Load() {
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		text, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return nil
		}
		line++
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("read line %d: %w", line, err)
		}
		read += int64(len(text))
		item, score, blank, err := parseItem(text)
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if blank {
			continue
		}
		if i.sent%1024 == 0 {
			i.report(read)
		}
		i.lines <- line
		i.sent, i.last = i.sent+1, line
		if _, err := fmt.Fprintf(out, "update %d %d\r\n", item, score); err != nil {
			return fmt.Errorf("send line %d: %w", line, err)
		}
	}
	return nil
}

// parseItem reads "id score", with the end of a line. Spaces around them, and lines of nothing
// else, are let pass: people edit snapshots.
func parseItem(line []byte) (item, score uint64, blank bool, err error) {
	if len(line) > maxLine {
		return 0, 0, false, fmt.Errorf("%.20q… is too long: expected an item and its score, such as 17 250", line)
	}
	text := strings.Trim(strings.TrimRight(string(line), "\r\n"), " ")
	if text == "" {
		return 0, 0, true, nil
	}
	first, second, _ := strings.Cut(text, " ")
	if item, err = strconv.ParseUint(first, 10, 32); err == nil {
		score, err = strconv.ParseUint(strings.TrimLeft(second, " "), 10, 32)
	}
	if err != nil {
		return 0, 0, false, fmt.Errorf("%q: expected an item and its score, whole numbers from 0 to 4294967295 with a space between, such as 17 250", text)
	}
	return item, score, false, nil
}

// read takes the reply to each update. The first that is not OK is its error. When the server sends
// none within the time-out, or closes the connection, it gives the connection up.
func (i *importing) read() (err error) {
	in := bufio.NewReaderSize(i.conn, 64<<10)
	for line := range i.lines {
		if in.Buffered() == 0 {
			_ = i.conn.SetReadDeadline(time.Now().Add(i.timeout))
		}
		reply, e := in.ReadSlice('\n')
		if e != nil {
			i.failed.Store(true)
			i.unknown = true
			_ = i.conn.Close()  // ends a write that the server does not take
			for range i.lines { // so that the sender never waits
			}
			return cmp.Or(err, i.noReply(line, e))
		}
		switch text := strings.TrimRight(string(reply), "\r\n"); {
		case text != "OK" && err == nil:
			i.failed.Store(true)
			err = fmt.Errorf("line %d: the server answers %.200q instead of OK", line, text)
		case text == "OK" && err == nil:
			i.imported = line
		case text == "OK":
			i.unknown = true
		}
	}
	return err
}

// noReply explains why there is no reply to a line.
func (i *importing) noReply(line int64, err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the server did not answer within %v", i.timeout)
	case errors.Is(err, io.EOF):
		return errors.New("the server closed the connection")
	}
	return fmt.Errorf("read the reply to line %d: %w", line, err)
}

// state says, after an error, which lines are imported and where to go on.
func (i *importing) state() string {
	switch next := i.imported + 1; {
	case i.unknown && i.imported == 0:
		return fmt.Sprintf("lines up to %d may be imported", i.last)
	case i.unknown:
		return fmt.Sprintf("lines before %d are imported, those up to %d may be", next, i.last)
	case i.imported == 0:
		return "nothing is imported"
	default:
		return fmt.Sprintf("lines before %d are imported, go on with line %d", next, next)
	}
}
