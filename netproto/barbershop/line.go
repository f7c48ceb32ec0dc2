package barbershop

import "bytes"

// MaxLine is the most bytes of a line without its end: several times what the longest command
// needs.
const MaxLine = 1024

// maxWords is one more than any command has, so that too many are noticed.
const maxWords = 4

// lines splits a stream into lines, which end with LF or CR LF. It reports a line longer than
// MaxLine as soon as that is certain, and drops the rest of it. What it finds does not depend on
// where the stream was cut into reads.
type lines struct {
	dropping bool // the rest of a line that was too long is still to come
}

type lineKind uint8

const (
	lineShort   lineKind = iota // nothing complete: wait for more
	lineDropped                 // part of a line that was reported as too long
	lineWhole                   // text is the line without its end
	lineTooLong                 // text is how it begins
)

// next looks at the start of buf. The text aliases buf; n is how many bytes are done with.
func (l *lines) next(buf []byte) (text []byte, n int, kind lineKind) {
	if l.dropping {
		if len(buf) == 0 {
			return nil, 0, lineShort
		}
		end := bytes.IndexByte(buf, '\n')
		if end < 0 {
			return nil, len(buf), lineDropped
		}
		l.dropping = false
		return nil, end + 1, lineDropped
	}
	head := buf[:min(len(buf), MaxLine+len("\r\n"))]
	end := bytes.IndexByte(head, '\n')
	if end < 0 {
		if len(head) < MaxLine+len("\r\n") {
			return nil, 0, lineShort
		}
		l.dropping = true
		return head[:MaxLine], len(head), lineTooLong
	}
	text = bytes.TrimSuffix(head[:end], []byte{'\r'})
	if len(text) > MaxLine {
		return text[:MaxLine], end + 1, lineTooLong
	}
	return text, end + 1, lineWhole
}

// words holds the words of a line, of which it counts no more than maxWords. Any number of spaces,
// and nothing else, separates two of them.
type words struct {
	at [maxWords][]byte
	n  int
}

func (w *words) split(text []byte) {
	w.n = 0
	for i := 0; w.n < maxWords; {
		for i < len(text) && text[i] == ' ' {
			i++
		}
		if i == len(text) {
			return
		}
		end := bytes.IndexByte(text[i:], ' ')
		if end < 0 {
			end = len(text) - i
		}
		w.at[w.n] = text[i : i+end]
		w.n++
		i += end
	}
}

// isV2 tells whether a command name belongs to the second dialect: it has upper-case letters and no
// lower-case ones.
func isV2(name []byte) bool {
	upper := false
	for _, c := range name {
		if 'a' <= c && c <= 'z' {
			return false
		}
		upper = upper || 'A' <= c && c <= 'Z'
	}
	return upper
}
