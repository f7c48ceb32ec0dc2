package pinpriq

import (
	"bytes"
	"errors"
	"strings"
)

// errHTTP is why nothing of a connection is carried out.
var errHTTP = errors.New("the connection begins like an HTTP request: perhaps a page in a browser on this machine tries to use the server")

// httpGuard watches the first bytes of a connection for an HTTP request line: a token (RFC 9110,
// section 5.6.2), a space, and the beginning of a target. A page chooses the token and what
// follows the header, so a request line that is read as requests lets the page push and pop.
//
// The token may be of any length and arrive in pieces, so the guard watches until a byte shows that
// this is no request line. What lies within the token is carried out meanwhile: readies, which do
// nothing without a subscription, or requests for a queue name of 8,481 bytes or more.
type httpGuard struct {
	passed bool // the connection does not begin with a request line
	token  int  // how many bytes at the start of the unserved ones belong to the token
}

// check looks at all that was received and not served.
func (g *httpGuard) check(buf []byte) error {
	if g.passed {
		return nil
	}
	for g.token < len(buf) && isTokenByte(buf[g.token]) {
		g.token++
	}
	if g.token == len(buf) {
		return nil
	}
	if buf[g.token] != ' ' {
		g.passed = true
	} else if beginsTarget(buf[g.token+1:]) {
		return errHTTP
	}
	return nil
}

// served notes that n bytes were carried out. A request that reached beyond the token was complete
// before it became a request line.
func (g *httpGuard) served(n int) {
	g.passed = g.passed || n > g.token
	g.token -= n
}

// beginsTarget tells whether b starts like the target of a request line: a path, the asterisk, or
// the address that is sent to a proxy.
func beginsTarget(b []byte) bool {
	const scheme = "http"
	return len(b) > 0 && (b[0] == '/' || b[0] == '*') ||
		len(b) >= len(scheme) && bytes.EqualFold(b[:len(scheme)], []byte(scheme))
}

func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
