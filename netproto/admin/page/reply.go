package page

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

// failure is an error that the Redis door has replied with.
type failure string

func (f failure) Error() string { return string(f) }

var errLarge = failure(fmt.Sprintf("ERR the reply has more than %d MiB, which the page does not take: ask for less, as with COUNT, or ask the Redis port", maxReply>>20))

// appendRequest appends a request to the Redis door.
func appendRequest[T string | jsonbytes.Bytes](dst []byte, words ...T) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", len(words))
	for _, word := range words {
		dst = fmt.Appendf(dst, "$%d\r\n", len(word))
		dst = append(append(dst, word...), "\r\n"...)
	}
	return dst
}

// replies reads replies of RESP3.
type replies struct {
	*bufio.Reader
	cut int // bytes of a text that are kept; 0: all
}

var errReply = errors.New("a reply is not of the Redis protocol")

// next appends the next reply as JSON. It returns an error of the door as a failure.
func (r replies) next(dst []byte) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil || len(line) < 3 {
		return dst, errors.Join(err, errReply)
	}
	kind, text := line[0], string(line[1:len(line)-2])
	switch kind {
	case '-':
		return dst, failure(text)
	case '+':
		return jsonbytes.Append(dst, []byte(text)), nil
	case '_':
		return append(dst, "null"...), nil
	case '#':
		return strconv.AppendBool(dst, text == "t"), nil
	case ':', ',':
		if f, err := strconv.ParseFloat(text, 64); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return jsonbytes.Append(dst, []byte(text)), nil
		}
		return append(dst, text...), nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return dst, errReply
	case n < 0:
		return append(dst, "null"...), nil
	case kind == '$', kind == '=':
		return r.bulk(dst, n, kind == '=')
	case kind == '*', kind == '~', kind == '>':
		return r.array(dst, n)
	case kind == '%':
		return r.object(dst, n)
	}
	return dst, errReply
}

// bulk appends a text of n bytes. A verbatim one begins with what it is. One that is cut is
// {"cut":…,"bytes":n}.
func (r replies) bulk(dst []byte, n int, verbatim bool) ([]byte, error) {
	kept := n
	if r.cut > 0 {
		kept = min(n, r.cut)
	}
	if len(dst)+kept > maxReply {
		return dst, errLarge
	}
	text := make([]byte, kept)
	if _, err := io.ReadFull(r, text); err != nil {
		return dst, err
	}
	if _, err := r.Discard(n - kept + len("\r\n")); err != nil {
		return dst, err
	}
	if verbatim {
		_, text, _ = bytes.Cut(text, []byte(":"))
	}
	if kept == n {
		return jsonbytes.Append(dst, text), nil
	}
	dst = jsonbytes.Append(append(dst, `{"cut":`...), wholeRunes(text))
	return fmt.Appendf(dst, `,"bytes":%d}`, n), nil
}

// wholeRunes leaves out the beginning of a rune at the end of a text, if that makes it UTF-8.
func wholeRunes(text []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if head, tail := text[:len(text)-i], text[len(text)-i:]; !utf8.FullRune(tail) && utf8.Valid(head) {
			return head
		}
	}
	return text
}

// array appends an array of n replies.
func (r replies) array(dst []byte, n int) (_ []byte, err error) {
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = r.next(dst); err != nil {
			return dst, err
		}
		if len(dst) > maxReply {
			return dst, errLarge
		}
	}
	return append(dst, ']'), nil
}

// object appends a map of n pairs: as an object if all names are texts, else as an array of pairs.
// One that would look like other bytes is such an array, too.
func (r replies) object(dst []byte, n int) (_ []byte, err error) {
	size, texts := len(dst), true
	pairs := make([][2][]byte, 0, n)
	for range n {
		var pair [2][]byte
		for i := range pair {
			if pair[i], err = r.next(nil); err != nil {
				return dst, err
			}
		}
		if size += len(pair[0]) + len(pair[1]); size > maxReply {
			return dst, errLarge
		}
		texts = texts && pair[0][0] == '"'
		pairs = append(pairs, pair)
	}
	if n == 1 && string(pairs[0][0]) == `"base64"` {
		texts = false
	}
	form := [...]string{"[", "[", ",", "]", "]"}
	if texts {
		form = [...]string{"{", "", ":", "", "}"}
	}
	dst = append(dst, form[0]...)
	for i, pair := range pairs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, form[1]...), pair[0]...)
		dst = append(append(dst, form[2]...), pair[1]...)
		dst = append(dst, form[3]...)
	}
	return append(dst, form[4]...), nil
}
