package terminal

import (
	"fmt"
	"strings"
)

// Reword is an error with another text. It still is the error, so that it has the same remedy.
func Reword(text string, err error) error { return reworded{text, err} }

type reworded struct {
	text string
	error
}

func (r reworded) Error() string { return r.text }

// Unwrap returns the error as it was.
func (r reworded) Unwrap() error { return r.error }

// OneLine is the first line of an error, and the number of the others. The error of a damaged
// folder has a line for each table.
func OneLine(err error) string {
	first, rest, more := strings.Cut(err.Error(), "\n")
	if !more {
		return first
	}
	return fmt.Sprintf("%s (and %d more)", first, 1+strings.Count(rest, "\n"))
}
