package redis

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Replies, as they are on the wire.
const (
	ok         = "+OK\r\n"
	queued     = "+QUEUED\r\n"
	null       = "$-1\r\n"
	nullArray  = "*-1\r\n"
	emptyArray = "*0\r\n"
	wrongType  = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
)

func number(n int) string  { return fmt.Sprintf(":%d\r\n", n) }
func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func array(elements ...string) string {
	return fmt.Sprintf("*%d\r\n%s", len(elements), strings.Join(elements, ""))
}

func bulks(values ...string) string {
	elements := make([]string, len(values))
	for i, v := range values {
		elements[i] = bulk(v)
	}
	return array(elements...)
}

// command is a command with its arguments.
type command []string

func cmd(args ...string) command { return args }

// conn is a client's connection. It compares replies byte by byte. What is wrong ends the test, or
// the goroutine of the test that saw it.
type conn struct {
	t      testing.TB
	socket *patient
	in     *bufio.Reader
}

// patient is a connection of which each read and each write may take so long, however many there
// were.
type patient struct {
	net.Conn
	limit time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	_ = p.SetReadDeadline(time.Now().Add(p.limit))
	return p.Conn.Read(b)
}

func (p *patient) Write(b []byte) (int, error) {
	_ = p.SetWriteDeadline(time.Now().Add(p.limit))
	return p.Conn.Write(b)
}

func dial(t testing.TB, addr string) *conn {
	t.Helper()
	dialled, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dialled.Close() })
	socket := &patient{dialled, limit}
	return &conn{t: t, socket: socket, in: bufio.NewReader(socket)}
}

// write sends commands in one write.
func (c *conn) write(commands ...command) {
	c.t.Helper()
	var text strings.Builder
	for _, args := range commands {
		text.WriteString(bulks(args...))
	}
	c.raw(text.String())
}

// raw sends bytes in one write.
func (c *conn) raw(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.socket, text); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// read returns the next reply, whole and as it came.
func (c *conn) read() string {
	c.t.Helper()
	reply, err := c.next()
	if err != nil {
		c.t.Fatalf("read after %q: %v", reply, err)
	}
	return reply
}

func (c *conn) next() (string, error) {
	head, err := c.in.ReadString('\n')
	if err != nil {
		return head, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(head[1:])) // 0 for texts, which have no body
	switch head[0] {
	case '$':
		if n < 0 {
			return head, nil
		}
		body := make([]byte, n+2)
		read, err := io.ReadFull(c.in, body)
		return head + string(body[:read]), err
	case '*', '~', '>':
		for range n {
			element, err := c.next()
			head += element
			if err != nil {
				return head, err
			}
		}
	}
	return head, nil
}

// want reads as many replies as are given and compares them.
func (c *conn) want(replies ...string) {
	c.t.Helper()
	for i, want := range replies {
		if got := c.read(); got != want {
			c.t.Fatalf("reply %d is %q, want %q", i+1, got, want)
		}
	}
}

// do sends a command and wants its reply.
func (c *conn) do(reply string, args ...string) {
	c.t.Helper()
	c.write(args)
	if got := c.read(); got != reply {
		c.t.Fatalf("%q is answered %q, want %q", args, got, reply)
	}
}

// ask sends a command and returns its reply.
func (c *conn) ask(args ...string) string {
	c.t.Helper()
	c.write(args)
	return c.read()
}

// transaction sends commands between MULTI and EXEC in one write and returns the reply of EXEC.
func (c *conn) transaction(commands ...command) string {
	c.t.Helper()
	c.write(append(append([]command{cmd("MULTI")}, commands...), cmd("EXEC"))...)
	c.want(ok)
	for range commands {
		c.want(queued)
	}
	return c.read()
}

// wantClosed wants the server to close the connection without another byte.
func (c *conn) wantClosed() {
	c.t.Helper()
	if b, err := c.in.ReadByte(); err != io.EOF {
		c.t.Fatalf("read %q, %v; want the end of the connection", b, err)
	}
}

// hangUp closes the connection as the end of a process does.
func (c *conn) hangUp() {
	c.t.Helper()
	if err := c.socket.Close(); err != nil {
		c.t.Fatal(err)
	}
}

// awaitBlocked returns when so many clients of the server wait in a blocking command. Without it a
// test could not tell who came first.
func (c *conn) awaitBlocked(n int) {
	c.t.Helper()
	want := fmt.Sprintf("blocked_clients:%d\r\n", n)
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if strings.Contains(c.ask("INFO", "clients"), want) {
			return
		}
	}
	c.t.Fatalf("the server does not come to say %q", want)
}

// text returns the value of a bulk string, and whether it is not nil.
func (c *conn) text(reply string) (string, bool) {
	c.t.Helper()
	if reply == null || reply == nullArray {
		return "", false
	}
	head, body, _ := strings.Cut(reply, "\r\n")
	if head[0] != '$' {
		c.t.Fatalf("reply %q, want a bulk string", reply)
	}
	return strings.TrimSuffix(body, "\r\n"), true
}

// int returns the value of an integer.
func (c *conn) int(reply string) int {
	c.t.Helper()
	n, err := strconv.Atoi(strings.Trim(reply, ":\r\n"))
	if err != nil || reply[0] != ':' {
		c.t.Fatalf("reply %q, want an integer", reply)
	}
	return n
}

// texts returns the elements of an array of bulk strings; none for nil.
func (c *conn) texts(reply string) []string {
	c.t.Helper()
	if reply[0] != '*' {
		c.t.Fatalf("reply %q, want an array", reply)
	}
	_, body, _ := strings.Cut(reply, "\r\n")
	var found []string
	for elements := (&conn{in: bufio.NewReader(strings.NewReader(body))}); ; {
		element, err := elements.next()
		if err != nil {
			return found
		}
		text, _ := c.text(element)
		found = append(found, text)
	}
}
