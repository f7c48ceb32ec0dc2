package terminal

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// terminalOf is the terminal that an output of a command ends in, nil if that is none.
func terminalOf(w io.Writer) *os.File {
	switch w := w.(type) {
	case *Output:
		return terminalOf(w.sink)
	case interface{ Onto() io.Writer }: // of another package
		return terminalOf(w.Onto())
	case *sink:
		return terminalOf(w.w)
	case *interruptible:
		return terminalOf(w.file)
	case *os.File:
		if term.IsTerminal(int(w.Fd())) {
			return w
		}
	}
	return nil
}

// SizeOf is how many characters a terminal has in a line, and how many lines: 0 for other outputs.
func SizeOf(w io.Writer) (width, height int) {
	if file := terminalOf(w); file != nil {
		width, height, _ = term.GetSize(int(file.Fd()))
	}
	return width, height
}

// readable tells whether a text of any bytes can only be read: no terminal obeys it. The characters
// of also are let pass.
func readable(text, also string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) && !strings.ContainsRune(also, r) })
}

// Legible is a text for a terminal: quoted if it could do more there than be read.
func Legible(text string) string {
	if readable(text, "\n\t") {
		return text
	}
	return strconv.Quote(text)
}

// PayloadFor is a payload as it goes to an output: legible on a terminal, elsewhere as it is.
func PayloadFor(w io.Writer, payload []byte) []byte {
	if terminalOf(w) == nil {
		return payload
	}
	return []byte(Legible(string(payload)))
}
