package barbershop_test

import (
	"io"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/barbershop"
)

func TestABrowserCannotDriveTheBoard(t *testing.T) {
	const v1, v2 = "CLIENT_ERROR HTTP is not spoken here: the connection is closed", "-ERROR HTTP is not spoken here: the connection is closed"
	long := strings.Repeat("x", barbershop.MaxLine)
	for name, c := range map[string]struct{ line, want string }{
		"a request with a body":    {"POST / HTTP/1.1", v2},
		"its first word is enough": {"POST", v2},
		"a long address":           {"POST /" + long + " HTTP/1.1", v2},
		"the name of the host":     {"Host: 127.0.0.1:8002", v1},
		"any other request":        {"OPTIONS /next HTTP/1.1", v2},
		"an older version":         {"put / HTTP/1.0", v1},
		"a command with a version": {"update 1 7 HTTP/1.1", v1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBoard(t)
			c1, apart := b.dial(), b.dial()
			request := c.line + "\r\nupdate 2 9\r\n\r\nupdate 2 9\r\nnext\r\n"
			c1.send("update 1 5\r\n" + request)
			c1.wantLast("OK\r\n" + c.want + "\r\n")
			for i := 0; i < len(c.line)+2; i++ { // the connection may be closed after that
				apart.send(request[i : i+1])
			}
			apart.wantLast(c.want + "\r\n")
			other := b.dial()
			other.ask("next", "1")
			other.ask("next", "-1")
			if !b.logged("a line belongs to an HTTP request") {
				t.Error("the log does not say why the connections were closed")
			}
		})
	}
}

func TestWordsLikeThoseOfHTTPAreUnknownCommands(t *testing.T) {
	c := newBoard(t).dial()
	c.ask("Posts / 1", "ERROR")
	c.ask("POSTS / 1", "-ERROR")
	c.ask("Hosts: x", "ERROR")
	c.ask("update POST Host:", "CLIENT_ERROR item is not a number: expected digits, at most 4294967295")
	c.ask("next HTTP/1.1 ", "CLIENT_ERROR wrong number of words: expected next alone")
	c.ask("HTTP/1.1", "-ERROR")
	c.ask("x HTTP/1.1"+strings.Repeat(" ", barbershop.MaxLine), tooLong)
	c.ask(strings.Repeat("x", barbershop.MaxLine-len(" HTTP/1.1"))+" HTTP/1.1y", tooLong)
	c.wantEnd()
}

// wantLast expects text and then the end of the connection.
func (c *client) wantLast(text string) {
	c.t.Helper()
	got, err := io.ReadAll(c.conn)
	if string(got) != text || err != nil {
		c.t.Fatalf("got %q (%v) before the end, want %q", got, err, text)
	}
}
