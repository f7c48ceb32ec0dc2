package resp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	process "os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// limit bounds every wait for another process: far longer than any should take.
const limit = time.Minute

// original is redis-server. It keeps nothing on disk.
type original struct {
	t       testing.TB
	address string
}

func newOriginal(t testing.TB) *original {
	t.Helper()
	path, err := process.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed: apt install redis-server")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	if err := l.Close(); err != nil { // the port stays free for a moment
		t.Fatal(err)
	}
	cmd := process.Command(path, "--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", "")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	log := bufio.NewScanner(out)
	for log.Scan() {
		if strings.Contains(log.Text(), "Ready to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			return &original{t, address}
		}
	}
	t.Fatal("redis-server did not start")
	return nil
}

func (o *original) restart() {}

func (o *original) dial() *conn {
	o.t.Helper()
	c, err := net.Dial("tcp", o.address)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		o.t.Fatal(err)
	}
	return &conn{t: o.t, WriteCloser: c, in: bufio.NewReader(c)}
}

// reply is one reply: its kind, which is the first byte of it on the wire, and its text or its
// elements.
type reply struct {
	kind     byte
	null     bool
	text     string
	elements []reply
}

func readReply(in *bufio.Reader) (r reply, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return r, err
	}
	line, ok := strings.CutSuffix(line, "\r\n")
	if !ok || line == "" {
		return r, fmt.Errorf("a reply begins with the line %q", line)
	}
	r.kind, r.text = line[0], line[1:]
	n, err := strconv.Atoi(r.text)
	switch r.kind {
	case '+', '-', ',', '_', '#', '(':
		return r, nil
	case ':':
		return r, err
	case '$', '=', '*', '~', '>', '%':
	default:
		return r, fmt.Errorf("a reply begins with the line %q", line)
	}
	switch {
	case err != nil || n < -1:
		return r, fmt.Errorf("a reply begins with the line %q", line)
	case n == -1:
		r.null = true
		return r, nil
	case r.kind == '$' || r.kind == '=':
		text := make([]byte, n+2)
		if _, err = io.ReadFull(in, text); err == nil && string(text[n:]) != "\r\n" {
			err = fmt.Errorf("a bulk of %d bytes is longer", n)
		}
		r.text = string(text[:n])
		return r, err
	case r.kind == '%':
		n *= 2
	}
	r.elements = make([]reply, n)
	for i := range r.elements {
		if r.elements[i], err = readReply(in); err != nil {
			return r, err
		}
	}
	return r, nil
}

// sort orders the elements of all arrays.
func (r reply) sort() {
	for _, e := range r.elements {
		e.sort()
	}
	slices.SortFunc(r.elements, func(a, b reply) int { return strings.Compare(a.String(), b.String()) })
}

// String writes a reply on one line, no two replies alike: a bulk in quotes, an array in brackets,
// any other as on the wire.
func (r reply) String() string {
	switch r.kind {
	case '$':
		if r.null {
			return "$-1"
		}
		return quote(r.text)
	case '*', '~', '>', '%':
		if r.null {
			return "*-1"
		}
		list := make([]string, len(r.elements))
		for i, e := range r.elements {
			list[i] = e.String()
		}
		return strings.TrimPrefix(string(r.kind), "*") + "[" + strings.Join(list, " ") + "]"
	}
	return string(r.kind) + r.text
}

// quote writes a text in quotes, runs of a byte in short.
func quote(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		n := 1
		for i+n < len(text) && text[i+n] == text[i] {
			n++
		}
		run := n >= 40
		if !run {
			n = 1
		}
		q := strconv.Quote(text[i : i+1])
		if q = q[1 : len(q)-1]; run {
			q = fmt.Sprintf("{%d:%s}", n, q)
		}
		out.WriteString(q)
		i += n
	}
	return `"` + out.String() + `"`
}
