package sim

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/holdfast-queue/holdfast/fuzz/model"
)

// request is a command as bytes.
func request(words []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

// reply reads the first reply: nil, a string, an int64, a model.Err or a []any.
func reply(b []byte) (v any, rest []byte, whole bool) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(line) == 0 {
		return nil, b, false
	}
	text := string(line[1:])
	n, _ := strconv.ParseInt(text, 10, 64)
	switch line[0] {
	case '+':
		return text, rest, true
	case '-':
		return model.Err(text), rest, true
	case ':':
		return n, rest, true
	case '$':
		if n < 0 {
			return nil, rest, true
		}
		if int64(len(rest)) < n+2 {
			return nil, b, false
		}
		return string(rest[:n]), rest[n+2:], true
	case '*':
		if n < 0 {
			return nil, rest, true
		}
		all := []any{}
		for range n {
			if v, rest, ok = reply(rest); !ok {
				return nil, b, false
			}
			all = append(all, v)
		}
		return all, rest, true
	}
	return nil, b, false
}
