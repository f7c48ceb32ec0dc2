package resp

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// The limits of a request.
const (
	// maxArg is the largest argument: what a packet or a value may have.
	maxArg = 1 << 20
	// maxArgs is the most arguments.
	maxArgs = 1 << 20
	// maxRequest is the most bytes of a request: several times what one batch takes, for long lists of
	// names to read. The read buffer grows to that.
	maxRequest = 4 << 20
	// maxLine is the most bytes of an inline command, or of a line that announces a length.
	maxLine = 64 << 10
	// Before the password a request is short, so that strangers cannot take memory.
	maxStrangerArgs = 10
	maxStrangerArg  = 16 << 10

	keepSpans = 1024 // arguments for whose places a connection keeps the memory
)

// parser cuts a stream into requests. It remembers what it has seen of a request that is not
// complete, so a long one is looked at once, in whatever pieces it arrives.
type parser struct {
	stranger bool   // the password was not given yet
	spans    []span // of the arguments seen so far
	begun    bool   // the number of arguments is known
	left     int    // arguments that are still to come
	sized    bool   // the length of the next one is known
	size     int    // that length
	at       int    // bytes of the request that were looked at
	line     []byte // arguments of an inline command, without quotes
}

// span is where an argument lies, counted from the start of the request.
type span struct{ from, to uint32 }

// protocolError makes an error, in Redis's words, that ends the connection.
func protocolError(format string, a ...any) error {
	return fmt.Errorf("Protocol error: "+format, a...)
}

// next looks at the start of buf. It returns the arguments of the first request, in dst, and its
// length; 0 if it is not complete. A request without arguments is to be skipped. The arguments
// alias buf. The caller calls done once it has carried out the request, or again if it will ask for
// the same one later.
func (p *parser) next(buf []byte, dst [][]byte) (args [][]byte, n int, err error) {
	if !p.begun && buf[0] != '*' {
		return p.inline(buf, dst)
	}
	if complete, err := p.multibulk(buf); err != nil || !complete {
		if err == nil && p.at+p.size > maxRequest {
			err = protocolError("request is longer than %d bytes", maxRequest)
		}
		return dst, 0, err
	}
	for _, s := range p.spans {
		dst = append(dst, buf[s.from:s.to])
	}
	return dst, p.at, nil
}

// done forgets the request that next has returned.
func (p *parser) done() {
	p.again()
	if cap(p.spans) > keepSpans {
		p.spans = nil
	}
}

// again makes next look at the same request once more.
func (p *parser) again() {
	p.spans = p.spans[:0]
	p.begun, p.sized, p.left, p.size, p.at = false, false, 0, 0, 0
}

// multibulk goes on with a request that is an array of bulks. It says whether that is complete.
func (p *parser) multibulk(buf []byte) (complete bool, err error) {
	if !p.begun {
		n, ok, err := p.length(buf, "mbulk count")
		switch {
		case err != nil || !ok:
			return false, err
		case n == invalid || n > maxArgs:
			return false, protocolError("invalid multibulk length")
		case n > maxStrangerArgs && p.stranger:
			return false, protocolError("unauthenticated multibulk length")
		}
		p.begun, p.left = true, int(max(n, 0))
	}
	for p.left > 0 {
		if !p.sized {
			from := p.at
			n, ok, err := p.length(buf, "bulk count")
			switch {
			case err != nil || !ok:
				return false, err
			case buf[from] != '$':
				return false, protocolError("expected '$', got '%c'", printable(buf[from]))
			case n < 0 || n > maxArg:
				return false, protocolError("invalid bulk length")
			case n > maxStrangerArg && p.stranger:
				return false, protocolError("unauthenticated bulk length")
			}
			p.sized, p.size = true, int(n)
		}
		end := p.at + p.size
		if end+len("\r\n") > len(buf) {
			return false, nil
		}
		if end > maxRequest {
			return false, protocolError("request is longer than %d bytes", maxRequest)
		}
		p.spans = append(p.spans, span{uint32(p.at), uint32(end)})
		p.at = end + len("\r\n")
		p.sized, p.size = false, 0
		p.left--
	}
	return true, nil
}

// invalid is what length returns for a line that is no number.
const invalid = -1 << 63

// length reads the line that announces a length. ok is false if it is not complete.
func (p *parser) length(buf []byte, what string) (n int64, ok bool, err error) {
	rest := buf[p.at:]
	end := bytes.IndexByte(rest, '\r')
	if end > maxLine || end < 0 && len(rest) > maxLine {
		return 0, false, protocolError("too big %s string", what)
	}
	if end < 0 || end+1 == len(rest) {
		return 0, false, nil
	}
	n, ok = parseInt(rest[1:max(end, 1)])
	if !ok {
		n = invalid
	}
	p.at += end + len("\r\n")
	return n, true, nil
}

func printable(c byte) byte {
	if c < ' ' || c > '~' {
		return '?'
	}
	return c
}

// errHTTP is why nothing more of a connection is carried out.
var errHTTP = errors.New("a line belongs to an HTTP request: perhaps a page in a browser on this machine tries to use the server")

// inline reads a request that is a line of words, as people type it.
func (p *parser) inline(buf []byte, dst [][]byte) (args [][]byte, n int, err error) {
	end := bytes.IndexByte(buf, '\n')
	if end < 0 {
		if len(buf) > maxLine {
			return dst, 0, protocolError("too big inline request")
		}
		return dst, 0, nil
	}
	if end > maxLine {
		return dst, 0, protocolError("too big inline request")
	}
	text := bytes.TrimSuffix(buf[:end], []byte{'\r'})
	if endsLikeHTTP(text) {
		return dst, 0, errHTTP
	}
	if !p.split(text) {
		return dst, 0, protocolError("unbalanced quotes in request")
	}
	for _, s := range p.spans {
		dst = append(dst, p.line[s.from:s.to])
	}
	return dst, end + 1, nil
}

// split cuts a line into words. A word may be quoted, and must be where it has spaces. It returns
// false if a quote does not end, or another word follows it without a space.
func (p *parser) split(text []byte) (ok bool) {
	p.line = p.line[:0]
	p.spans = p.spans[:0]
	for {
		text = bytes.TrimLeft(text, spaces)
		if len(text) == 0 {
			return true
		}
		from := len(p.line)
		if text, ok = p.word(text); !ok {
			return false
		}
		p.spans = append(p.spans, span{uint32(from), uint32(len(p.line))})
	}
}

const spaces = " \t\n\v\f\r\x00"

// word appends the first word of text to the line and returns what follows it.
func (p *parser) word(text []byte) (rest []byte, ok bool) {
	for i, c := range text {
		switch {
		case c == '"' || c == '\'':
			return p.quoted(text[i+1:], c)
		case strings.IndexByte(spaces, c) >= 0:
			return text[i:], true
		}
		p.line = append(p.line, c)
	}
	return nil, true
}

// quoted appends what stands before the closing quote.
func (p *parser) quoted(text []byte, quote byte) (rest []byte, ok bool) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == quote:
			rest = text[i+1:]
			return rest, len(rest) == 0 || strings.IndexByte(spaces, rest[0]) >= 0
		case c == '\\' && i+1 < len(text) && (quote == '"' || text[i+1] == quote):
			b, n := unescape(text[i+1:])
			p.line = append(p.line, b)
			i += n
			continue
		}
		p.line = append(p.line, c)
	}
	return nil, false
}

// unescape reads what follows a backslash: a byte in two hex digits, a letter for a control byte,
// or the byte itself. n is how many bytes that takes.
func unescape(text []byte) (b byte, n int) {
	if text[0] == 'x' && len(text) > 2 {
		high, low := bytes.IndexByte(hexDigits, lower(text[1])), bytes.IndexByte(hexDigits, lower(text[2]))
		if high >= 0 && low >= 0 {
			return byte(high<<4 | low), 3
		}
	}
	if i := strings.IndexByte("nrtba", text[0]); i >= 0 {
		return "\n\r\t\b\a"[i], 1
	}
	return text[0], 1
}

var hexDigits = []byte("0123456789abcdef")

// A page in a browser can make it send lines of the page's choice, but only behind the header of an
// HTTP request. The first line of one ends like HTTP, and a line that begins with Host follows.

// endsLikeHTTP tells by its end that a line is the first of a request.
func endsLikeHTTP(line []byte) bool {
	return bytes.HasSuffix(line, []byte(" HTTP/1.1")) || bytes.HasSuffix(line, []byte(" HTTP/1.0"))
}

// isHTTP tells by its first word that a request belongs to the header of an HTTP request.
func isHTTP(name []byte) bool { return is(name, "post") || is(name, "host:") }
