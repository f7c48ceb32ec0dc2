package client

import (
	"bytes"
	"iter"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// value is a value of a reply as it came: a text, a number, null, or several values. Most of a
// packet's fields are read once, so they need not become values of Go before.
type value struct {
	kind byte   // RESP's mark of it; '_' for each null
	body []byte // the text or the digits; the bytes of several values
}

// readValue reads the first value of bytes that hold it whole, and returns those behind it.
func readValue(b []byte) (v value, rest []byte) {
	line, rest, _ := bytes.Cut(b, []byte("\r\n"))
	v = value{line[0], line[1:]}
	values := 0
	switch v.kind {
	case '$', '=', '!':
		if n := v.number(); n >= 0 {
			return value{v.kind, rest[:n]}, rest[n+2:]
		}
		return value{kind: '_'}, rest
	case '*', '~', '>':
		values = int(v.number())
	case '%':
		values = 2 * int(v.number())
	default:
		return v, rest
	}
	if values < 0 {
		return value{kind: '_'}, rest
	}
	body := rest
	for range values {
		_, rest = readValue(rest)
	}
	return value{v.kind, body[:len(body)-len(rest)]}, rest
}

// result is the value of a reply, or its error: redis.Nil for null.
func result(cmd *redis.RawCmd) (v value, err error) {
	b, err := cmd.Result()
	if err != nil {
		return v, refusal(err)
	}
	switch v, _ = readValue(b); v.kind {
	case '-', '!':
		return v, refusal(replyError(v.body))
	case '_':
		return v, redis.Nil
	}
	return v, nil
}

// replyError is an error in the server's words.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError implements redis.Error.
func (replyError) RedisError() {}

// isNull says whether the reply was the null.
func isNull(err error) bool { return err == redis.Nil }

// inside is the bytes of the values of a list or a map; none of anything else.
func (v value) inside() []byte {
	switch v.kind {
	case '*', '%', '~':
		return v.body
	}
	return nil
}

// list goes through the values of a list.
func (v value) list() iter.Seq[value] {
	return func(yield func(value) bool) {
		for rest := v.inside(); len(rest) > 0; {
			var next value
			if next, rest = readValue(rest); !yield(next) {
				return
			}
		}
	}
}

// fields goes through the pairs of a map: RESP2 has a list of names and values in its place.
func (v value) fields() iter.Seq2[[]byte, value] {
	return func(yield func([]byte, value) bool) {
		for rest := v.inside(); len(rest) > 0; {
			var name, field value
			name, rest = readValue(rest)
			if field, rest = readValue(rest); !yield(name.body, field) {
				return
			}
		}
	}
}

// byName is a map as one of Go.
func (v value) byName() map[string]value {
	all := make(map[string]value)
	for name, field := range v.fields() {
		all[string(name)] = field
	}
	return all
}

func (v value) text() string { return string(v.body) }

// number is 0 if it is none.
func (v value) number() int64 {
	n, _ := strconv.ParseInt(string(v.body), 10, 64)
	return n
}

// moment is the zero time if the server says none.
func (v value) moment() (t time.Time) {
	if v.kind == ':' {
		t = time.UnixMilli(v.number())
	}
	return t
}
