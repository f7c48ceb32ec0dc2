package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// importCmd sends a snapshot as updates.
type importCmd struct {
	File       string        `arg:"" help:"Snapshot to read; - is standard input."`
	Barbershop string        `default:"127.0.0.1:8002" placeholder:"HOST:PORT" help:"Address of the server (default ${default})."`
	Timeout    time.Duration `default:"30s" placeholder:"TIME" help:"How long to wait for the server to go on (default ${default})."`
	JSON       bool          `help:"Print a JSON object."`

	progress
}

// Help is shown below the usage line.
func (c *importCmd) Help() string {
	return `Each line becomes one update: it makes the item with that score, and adds the score to that of an item which is there already, be it from the same file; blank lines are passed over. So import twice, and all scores are doubled. The command returns when all lines are on the server's disk, and says how many there were; when it has to stop earlier, it says from which line on to import the rest.

Examples:

    holdfast barbershop import barbershop.snapshot
    tail -n +1001 barbershop.snapshot | holdfast barbershop import -
    holdfast barbershop import barbershop.snapshot --barbershop 127.0.0.1:8003`
}

// Validate is called with the parsed flags.
func (c *importCmd) Validate() error {
	return cmp.Or(checkAddress("--barbershop", c.Barbershop, "127.0.0.1:8002"), checkTimeout(c.Timeout))
}

// Run imports, and returns nil once all lines are on the server's disk.
func (c *importCmd) Run(ctx context.Context, p *program) error {
	file, err := p.input(c.File)
	if err != nil {
		return err
	}
	defer file.close()
	// A server of another protocol would make something else of the lines, so it is asked first what it is.
	if _, err := countItems(ctx, c.Barbershop, c.Timeout); err != nil {
		return fmt.Errorf("%w; nothing is imported", err)
	}
	dialer := net.Dialer{Timeout: c.Timeout}
	conn, err := dialer.DialContext(ctx, "tcp", c.Barbershop)
	if err != nil {
		return dialError(err, c.Barbershop, "--barbershop")
	}
	defer conn.Close()
	m := p.meter(c.Quiet)
	defer m.end()
	i := importing{conn: conn.(*net.TCPConn), timeout: c.Timeout, report: func(read int64) { m.set("import", inBytes, read, file.size) }}
	err = i.run(ctx, file.Reader)
	m.end()
	if err != nil {
		return fmt.Errorf("%w; %s", err, i.state())
	}
	if c.JSON {
		_, err = fmt.Fprintf(p.stdout, "{\"lines\":%d}\n", i.sent)
	} else {
		_, err = fmt.Fprintf(p.stdout, "%s imported\n", plural(i.sent, "line"))
	}
	return err
}

// importing is one import under way. One goroutine sends, and another reads the replies, so that
// the server is never kept from sending them.
type importing struct {
	conn    *net.TCPConn
	timeout time.Duration
	report  func(read int64) // bytes of the snapshot

	sent    int64        // updates; owned by the sender
	flushed atomic.Int64 // those that the sender no longer holds
	refused atomic.Bool  // set by the reader: nothing more need be sent
	stalled atomic.Bool  // set by watch: the connection was closed for it

	answered atomic.Int64 // replies; the reader counts
	done     int64        // those that were OK; owned by the reader until it has ended, as the next two
	wrong    int64        // number of the first that was not, 0 for none
	at       int64        // line of that

	lines lineNumbers
}

// maxLine is far longer than a line with two numbers.
const maxLine = 128

// run sends updates until the snapshot ends, a line is wrong, the server refuses one, or ctx ends,
// and returns when all that was sent is answered.
func (i *importing) run(ctx context.Context, snapshot io.Reader) error {
	replies := make(chan error, 1)
	go func() { replies <- i.read() }() // ends when the server closes, as it does once nothing more comes
	ended := make(chan struct{})
	defer close(ended)
	go i.watch(ended) // ends with run
	err := i.send(ctx, snapshot)
	_ = i.conn.CloseWrite()
	i.flushed.Store(i.sent + 1) // its own end is what the server owes at last
	replyErr := <-replies       // why sending failed, if it did
	switch {
	case i.stalled.Load():
		return fmt.Errorf("the server did not go on within %v", i.timeout)
	case replyErr != nil:
		return replyErr
	case err == nil && i.answered.Load() < i.sent:
		return errors.New("the server closed the connection")
	}
	return err
}

// watch closes the connection when the server has owed a reply for the time-out and sent none.
func (i *importing) watch(ended <-chan struct{}) {
	tick := time.NewTicker(i.timeout)
	defer tick.Stop()
	var answered, owed int64 // at the last tick
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		if n := i.answered.Load(); n == answered && n < owed {
			i.stalled.Store(true)
			_ = i.conn.Close()
			return
		}
		answered, owed = i.answered.Load(), i.flushed.Load()
	}
}

// send turns lines into requests.
func (i *importing) send(ctx context.Context, snapshot io.Reader) (err error) {
	in, out := bufio.NewReaderSize(snapshot, 64<<10), bufio.NewWriterSize(i.conn, 64<<10)
	defer func() { // what came before a wrong line is imported, so that the line is where to go on
		if e := out.Flush(); err == nil && e != nil {
			err = fmt.Errorf("send updates: %w", e)
		}
		i.flushed.Store(i.sent)
	}()
	var read, line int64
	for !i.refused.Load() {
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
			i.lines.skip(i.sent+1, i.answered.Load())
			continue
		}
		if i.sent%1024 == 0 {
			i.report(read)
		}
		request := append(out.AvailableBuffer(), "update "...)
		request = strconv.AppendUint(request, item, 10)
		request = append(request, ' ')
		request = strconv.AppendUint(request, score, 10)
		i.sent++
		if _, err := out.Write(append(request, "\r\n"...)); err != nil {
			return fmt.Errorf("send line %d: %w", line, err)
		}
		if out.Buffered() < len(request) { // some left, and of this one perhaps a part
			i.flushed.Store(i.sent - 1)
		}
	}
	return nil
}

// parseItem reads "id score", with the end of a line. Spaces around them, and lines of nothing else,
// are let pass: people edit snapshots.
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

// read reads replies until the server closes the connection. The first that is not OK is its error.
func (i *importing) read() (err error) {
	in := bufio.NewReaderSize(i.conn, 64<<10)
	for {
		line, e := in.ReadSlice('\n')
		if errors.Is(e, io.EOF) && len(line) == 0 {
			return err
		}
		n := i.answered.Load() + 1
		if e != nil {
			i.refused.Store(true)
			if err != nil { // the first to go wrong explains more
				return err
			}
			return fmt.Errorf("read the reply to line %d: %w", i.lines.of(n), e)
		}
		i.answered.Store(n)
		if reply := strings.TrimRight(string(line), "\r\n"); reply == "OK" {
			i.done++
		} else if err == nil {
			i.wrong, i.at = n, i.lines.of(n)
			i.refused.Store(true)
			err = fmt.Errorf("line %d: the server answers %.200q instead of OK", i.at, reply)
		}
	}
}

// state says, after an error, which lines are imported.
func (i *importing) state() string {
	answered := i.answered.Load()
	last := i.lines.of(i.sent)
	switch rest := i.sent - answered; {
	case rest > 0 && answered == 0:
		return fmt.Sprintf("whether %s imported is not known", linesAre(1, last))
	case rest > 0 && i.wrong == 0:
		return fmt.Sprintf("%s imported, of %s it is not known", linesAre(1, i.lines.of(answered)), lineRange(i.lines.of(answered+1), last))
	case rest > 0:
		return fmt.Sprintf("%d of the lines up to %d are imported, of the lines up to %d it is not known", i.done, i.lines.of(answered), last)
	case i.done == 0:
		return "nothing is imported"
	case i.wrong == 0:
		return fmt.Sprintf("%s imported, go on with line %d", linesAre(1, last), last+1)
	case i.done == i.wrong-1:
		return fmt.Sprintf("%s imported, go on with line %d", linesAre(1, i.at-1), i.at)
	case i.done == i.sent-1:
		return fmt.Sprintf("all other lines up to %d are imported, go on with line %d", last, last+1)
	default:
		return fmt.Sprintf("%d of the lines up to %d are imported, among them all before line %d", i.done, last, i.at)
	}
}

// lineRange names some lines.
func lineRange(first, last int64) string {
	if first == last {
		return fmt.Sprintf("line %d", first)
	}
	return fmt.Sprintf("lines %d to %d", first, last)
}

// linesAre is the same with its verb.
func linesAre(first, last int64) string {
	if first == last {
		return lineRange(first, last) + " is"
	}
	return lineRange(first, last) + " are"
}
