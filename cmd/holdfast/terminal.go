package main

import (
	"io"
	"os"
	"strconv"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// terminalOf is the terminal that an output of a command ends in, nil if that is none.
func terminalOf(w io.Writer) *os.File {
	switch w := w.(type) {
	case *output:
		return terminalOf(w.sink)
	case *page:
		return terminalOf(w.to)
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

// sizeOf is how many characters a terminal has in a line, and how many lines: 0 for other outputs.
func sizeOf(w io.Writer) (width, height int) {
	if file := terminalOf(w); file != nil {
		width, height, _ = term.GetSize(int(file.Fd()))
	}
	return width, height
}

// legible is a text of any bytes that no terminal obeys: it is quoted if it could do more there than
// be read.
func legible(text string) string {
	plain := utf8.ValidString(text)
	for _, r := range text {
		plain = plain && (unicode.IsGraphic(r) || r == '\n' || r == '\t')
	}
	if plain {
		return text
	}
	return strconv.Quote(text)
}

// payloadFor is a payload as it goes to an output: legible on a terminal, elsewhere as it is.
func payloadFor(w io.Writer, payload []byte) []byte {
	if terminalOf(w) == nil {
		return payload
	}
	return []byte(legible(string(payload)))
}
