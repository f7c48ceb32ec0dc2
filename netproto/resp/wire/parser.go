package wire

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/netproto"
)

// The limits of a request.
const (
	// MaxArg is the largest argument, but for payloads: broker.MaxRecord is that with a name, and some
	// more.
	MaxArg = 1 << 20
	// maxArgs is the most arguments.
	maxArgs = 1 << 20
	// MaxRequest is the most bytes of a request, for long lists of names to read. One that has a
	// longer argument may have so much more. The read buffer grows to that.
	MaxRequest = netproto.LongRequest
	// maxSkipped is the largest argument that is skipped, so that the connection goes on.
	maxSkipped = 512 << 20
	// maxLine is the most bytes of an inline command, or of a line that announces a length.
	maxLine = 64 << 10
	// Before the password a request is short, so that strangers cannot take memory.
	maxStrangerArgs = 10
	maxStrangerArg  = 16 << 10
)

// Refusal is why a request is skipped, in Redis's words. The connection goes on.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Parser cuts a stream into requests. It remembers how far it has looked at a request that is not
// complete, so a long one is looked at twice at most, in whatever pieces it arrives.
type Parser struct {
	Most     int  // bytes of the largest payload; 0 is MaxArg
	Stranger bool // the password was not given yet

	begun   bool    // the number of arguments is known
	all     int     // that number
	left    int     // of them are still to come
	sized   bool    // the length of the next one is known
	size    int     // that length, with the line break behind it
	large   bool    // an argument has more than MaxArg
	at      int     // bytes of the request that were looked at
	refused Refusal // why the request is skipped; "" if it is not
	line    []byte  // arguments of an inline command, without quotes
}

// protocolError makes an error, in Redis's words, that ends the connection.
func protocolError(format string, a ...any) error {
	return fmt.Errorf("Protocol error: "+format, a...)
}

// Next looks at the start of buf. It returns the arguments of the first request, in dst, and its
// length; 0 if it is not complete. A request without arguments is to be skipped: it may be a piece
// of one that is too large, of which the last comes with a Refusal. The arguments alias buf. The
// caller calls Reset once it has carried out the request, or will ask for the same one later.
func (p *Parser) Next(buf []byte, dst [][]byte) (args [][]byte, n int, err error) {
	if !p.begun && buf[0] != '*' {
		return p.inline(buf, dst)
	}
	whole := p.at == 0
	args, complete, err := p.multibulk(buf, dst, whole)
	switch {
	case err != nil:
		return dst, 0, err
	case p.refused != "":
		if n, p.at = p.at, 0; complete {
			err, p.refused = p.refused, ""
		}
		return dst, n, err
	case !complete:
		return dst, 0, nil
	case !whole: // now all arguments are there
		dst = slices.Grow(dst, p.all)
		p.Reset()
		args, _, _ = p.multibulk(buf, dst, true)
	}
	return args, p.at, nil
}

// Reset makes Next look at the start of a request. It does nothing while one is skipped.
func (p *Parser) Reset() {
	p.line = nil
	if p.refused == "" {
		p.begun, p.sized, p.large, p.left, p.size, p.at = false, false, false, 0, 0, 0
	}
}

// multibulk goes on with a request that is an array of bulks. It says whether that is complete. If
// they are wanted, it appends the arguments that it has found to dst.
func (p *Parser) multibulk(buf []byte, dst [][]byte, wanted bool) (args [][]byte, complete bool, err error) {
	if !p.begun {
		n, ok, err := p.length(buf, "mbulk count")
		switch {
		case err != nil || !ok:
			return dst, false, err
		case n == invalid || n > math.MaxInt32:
			return dst, false, protocolError("invalid multibulk length")
		case n > maxArgs:
			return dst, false, protocolError("invalid multibulk length: the limit is %d arguments", maxArgs)
		case n > maxStrangerArgs && p.Stranger:
			return dst, false, protocolError("unauthenticated multibulk length")
		}
		p.begun, p.all = true, int(max(n, 0))
		p.left = p.all
	}
	for ; p.left > 0; p.left-- {
		if !p.sized {
			if ok, err := p.bulkLength(buf); err != nil || !ok {
				return dst, false, err
			}
		}
		end := p.at + p.size
		switch {
		case p.refused != "" && end > len(buf):
			p.at, p.size = len(buf), end-len(buf)
			return dst, false, nil
		case end > len(buf):
			return dst, false, nil
		}
		if wanted && p.refused == "" { // of a skipped one buf may begin within the line break
			dst = append(dst, buf[p.at:end-len("\r\n")])
		}
		p.at, p.sized = end, false
	}
	return dst, true, nil
}

// bulkLength reads the line before an argument. ok is false if it is not complete.
func (p *Parser) bulkLength(buf []byte) (ok bool, err error) {
	from := p.at
	n, ok, err := p.length(buf, "bulk count")
	most, request := int64(max(p.Most, MaxArg)), MaxRequest
	if p.large = p.large || n > MaxArg; p.large {
		request += int(most) - MaxArg
	}
	switch {
	case err != nil || !ok:
		return false, err
	case buf[from] != '$':
		return false, protocolError("expected '$', got '%c'", printable(buf[from]))
	case n < 0:
		return false, protocolError("invalid bulk length")
	case n > maxSkipped:
		return false, protocolError("invalid bulk length: the limit is %d bytes", most)
	case n > maxStrangerArg && p.Stranger:
		return false, protocolError("unauthenticated bulk length")
	case p.refused != "":
	case n > most:
		p.refused = Refusal(fmt.Sprintf("ERR too large: an argument has %d bytes, the limit is %d", n, most))
	case p.at+int(n) > request:
		p.refused = Refusal(fmt.Sprintf("ERR the request is longer than %d bytes: send it in pieces", request))
	}
	p.sized, p.size = true, int(n)+len("\r\n")
	return true, nil
}

// Large says that an argument of the present request has more than MaxArg bytes: a payload may.
func (p *Parser) Large() bool { return p.large }

// Looked is how many bytes of a request that is not complete were looked at.
func (p *Parser) Looked() int { return p.at }

// Announced is how many bytes a request has that is not complete, as far as that is known; 0 if it
// is skipped.
func (p *Parser) Announced() int {
	if !p.sized || p.refused != "" {
		return 0
	}
	return p.at + p.size
}

// invalid is what length returns for a line that is no number.
const invalid = -1 << 63

// length reads the line that announces a length. ok is false if it is not complete.
func (p *Parser) length(buf []byte, what string) (n int64, ok bool, err error) {
	rest := buf[p.at:]
	// Most lengths have one or two digits, and one request may have a million of them.
	for i := 1; i < min(len(rest)-1, 5); i++ {
		if c := rest[i]; c == '\r' && n > 0 {
			p.at += i + len("\r\n")
			return n, true, nil
		} else if c < '0' || c > '9' || c == '0' && n == 0 {
			break
		} else {
			n = n*10 + int64(c-'0')
		}
	}
	end := bytes.IndexByte(rest, '\r')
	if end > maxLine || end < 0 && len(rest) > maxLine {
		return 0, false, protocolError("too big %s string", what)
	}
	if end < 0 || end+1 == len(rest) {
		return 0, false, nil
	}
	n, ok = ParseInt(rest[1:max(end, 1)])
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

// inline reads a request that is a line of words, as people type it.
func (p *Parser) inline(buf []byte, dst [][]byte) (args [][]byte, n int, err error) {
	end := bytes.IndexByte(buf, '\n')
	switch {
	case end > maxLine, end < 0 && len(buf) > maxLine:
		return dst, 0, protocolError("too big inline request")
	case end < 0:
		return dst, 0, nil
	}
	text := bytes.TrimSuffix(buf[:end], []byte{'\r'})
	if netproto.EndsLikeHTTP(text) {
		return dst, 0, netproto.ErrHTTP
	}
	if dst, ok := p.split(text, dst); ok {
		return dst, end + 1, nil
	}
	return dst, 0, protocolError("unbalanced quotes in request")
}

// split appends the words of a line to dst. A word may be quoted, and must be where it has spaces.
// It returns false if a quote does not end, or another word follows it without a space.
func (p *Parser) split(text []byte, dst [][]byte) (words [][]byte, ok bool) {
	p.line = slices.Grow(p.line[:0], len(text)) // words have fewer bytes, so they stay where they are
	for {
		text = bytes.TrimLeft(text, spaces)
		if len(text) == 0 {
			return dst, true
		}
		from := len(p.line)
		if text, ok = p.word(text); !ok {
			return dst, false
		}
		dst = append(dst, p.line[from:])
	}
}

const spaces = " \t\n\v\f\r\x00"

// word appends the first word of text to the line and returns what follows it.
func (p *Parser) word(text []byte) (rest []byte, ok bool) {
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
func (p *Parser) quoted(text []byte, quote byte) (rest []byte, ok bool) {
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
		if code, err := strconv.ParseUint(string(text[1:3]), 16, 8); err == nil {
			return byte(code), 3
		}
	}
	if i := strings.IndexByte("nrtba", text[0]); i >= 0 {
		return "\n\r\t\b\a"[i], 1
	}
	return text[0], 1
}
