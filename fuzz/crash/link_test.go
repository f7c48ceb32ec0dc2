package crash

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/fuzz/model"
)

// link is a connection that speaks the Redis protocol, for one goroutine.
type link struct {
	conn net.Conn
	in   *bufio.Reader
}

// send writes the commands of some calls at once.
func (l *link) send(calls ...call) error {
	var b []byte
	for _, c := range calls {
		for _, words := range c {
			b = fmt.Appendf(b, "*%d\r\n", len(words))
			for _, w := range words {
				b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
			}
		}
	}
	_, err := l.conn.Write(b)
	return err
}

// receive reads a reply for each command of a call.
func (l *link) receive(c call) (replies []any, err error) {
	for range c {
		v, err := l.reply()
		if err != nil {
			return nil, err
		}
		replies = append(replies, v)
	}
	return replies, nil
}

// ask sends a command and returns its reply.
func (l *link) ask(words ...string) (any, error) {
	if err := l.conn.SetDeadline(time.Now().Add(deadline)); err != nil {
		return nil, err
	}
	if err := l.send(call{words}); err != nil {
		return nil, err
	}
	return l.reply()
}

// reply reads one reply: nil, a string, an int64, a model.Err or a []any.
func (l *link) reply() (any, error) {
	line, err := l.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 {
		return nil, fmt.Errorf("a reply begins with %q", line)
	}
	text := line[1 : len(line)-2]
	switch line[0] {
	case '+':
		return text, nil
	case '-':
		return model.Err(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("a reply begins with %q", line)
	case line[0] == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case line[0] == '$':
		b := make([]byte, n+2)
		_, err := io.ReadFull(l.in, b)
		return string(b[:n]), err
	}
	all := make([]any, n)
	for i := range all {
		if all[i], err = l.reply(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
