package ask

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
	"time"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// importCmd sends a snapshot as updates.
type importCmd struct {
	File       string        `arg:"" help:"Snapshot to read, or - for standard input."`
	Barbershop string        `default:"127.0.0.1:8002" address:"127.0.0.1:8002" placeholder:"HOST:PORT" help:"Address of the server (default ${default})."`
	Timeout    time.Duration `default:"30s" range:"1ms 3650d" placeholder:"TIME" help:"How long to wait for the next reply (default ${default})."`

	connection.Encryption `group:"Connection"`
	terminal.Progress
}

func (c *importCmd) Help() string {
	return `Sends each line as an update: it puts a new item on the board with that score, and adds the score to that of an item which is there. So a second import of the same file doubles the scores. Blank lines are skipped. The command returns when every line is on the server's disk. When it stops before, it says which lines are imported.

Examples:

    holdfast barbershop import barbershop.snapshot
    tail -n +1001 barbershop.snapshot | holdfast barbershop import -
    holdfast barbershop import barbershop.snapshot --barbershop 127.0.0.1:8003`
}

// Run imports, and returns nil once all lines are on the server's disk.
func (c *importCmd) Run(ctx context.Context, p *terminal.Process) error {
	file, err := p.Input(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	// A server of another protocol would make something else of the lines, so it is asked first
	// what it is.
	if _, err := countItems(ctx, c.Barbershop, c.Timeout, &c.Encryption); err != nil {
		return fmt.Errorf("%w; nothing is imported", err)
	}
	conn, err := c.Dial(ctx, c.Barbershop, "--barbershop", c.Timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	m := p.Meter(c.Quiet)
	i := importing{conn: conn, replies: bufio.NewReader(conn), timeout: c.Timeout}
	err = i.run(ctx, file.Reader, func(read int64) { m.Set("import", terminal.InBytes, read, file.Size) })
	m.End()
	if err != nil {
		return fmt.Errorf("%w; %s", err, i.state())
	}
	_, err = fmt.Fprintf(p.Stdout, "%s imported\n", terminal.Plural(i.sent, "line"))
	return err
}

// importing is one import under way.
type importing struct {
	conn    net.Conn
	replies *bufio.Reader
	timeout time.Duration

	line     int64 // that was read last
	sent     int64 // updates
	last     int64 // line of the last of them
	imported int64 // line of the last update before the first that failed
	unknown  bool  // some update after imported may have been carried out
}

// run sends updates until the snapshot ends, a line is wrong, the server refuses one, or ctx ends.
// It returns when every update has its reply or can get none.
func (i *importing) run(ctx context.Context, snapshot io.Reader, report func(read int64)) error {
	in, read := bufio.NewReaderSize(snapshot, window), int64(0)
	for {
		lines, end := readLines(in, window, 0)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err := i.send(lines); err != nil {
			return err
		}
		for _, line := range lines {
			read += int64(len(line)) + 1
		}
		report(read)
		switch {
		case errors.Is(end, io.EOF):
			return nil
		case errors.Is(end, bufio.ErrBufferFull):
			return fmt.Errorf("line %d is too long: %w", i.line+1, errNoItem)
		case end != nil:
			return fmt.Errorf("read line %d: %w", i.line+1, end)
		}
	}
}

// send sends lines as updates, those before a wrong one, and reads the replies. The first that is
// not OK is its error. When the server sends none within the time-out, or closes the connection, it
// gives the connection up.
func (i *importing) send(lines [][]byte) (err error) {
	var updates []byte
	var sent []int64 // the lines of them
	var wrong error
	for _, text := range lines {
		i.line++
		item, score, blank, err := parseItem(text)
		if err != nil {
			wrong = fmt.Errorf("line %d: %w", i.line, err)
			break
		}
		if !blank {
			updates = fmt.Appendf(updates, "update %d %d\r\n", item, score)
			sent, i.last = append(sent, i.line), i.line
		}
	}
	i.sent += int64(len(sent))
	_ = i.conn.SetWriteDeadline(time.Now().Add(i.timeout))
	_, _ = i.conn.Write(updates) // the replies tell how far that came
	for _, line := range sent {
		if i.replies.Buffered() == 0 {
			_ = i.conn.SetReadDeadline(time.Now().Add(i.timeout))
		}
		reply, e := i.replies.ReadSlice('\n')
		if e != nil {
			i.unknown = true
			return cmp.Or(err, i.noReply(line, e))
		}
		switch text := strings.TrimRight(string(reply), "\r\n"); {
		case text != "OK" && err == nil:
			err = fmt.Errorf("line %d: the server answers %.200q instead of OK", line, text)
		case text == "OK" && err == nil:
			i.imported = line
		case text == "OK":
			i.unknown = true
		}
	}
	return cmp.Or(err, wrong)
}

// errNoItem means that a line is not what it should be.
var errNoItem = errors.New("expected an item and its score, whole numbers from 0 to 4294967295 with a space between, such as 17 250")

// parseItem reads "id score", with the end of a line. Spaces around them, and lines of nothing
// else, are let pass: people edit snapshots.
func parseItem(line []byte) (item, score uint64, blank bool, err error) {
	text := strings.Trim(strings.TrimRight(string(line), "\r\n"), " ")
	if text == "" {
		return 0, 0, true, nil
	}
	first, second, _ := strings.Cut(text, " ")
	if item, err = strconv.ParseUint(first, 10, 32); err == nil {
		score, err = strconv.ParseUint(strings.TrimLeft(second, " "), 10, 32)
	}
	if err != nil {
		return 0, 0, false, fmt.Errorf("%.60q: %w", text, errNoItem)
	}
	return item, score, false, nil
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
