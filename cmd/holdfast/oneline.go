package main

import (
	"fmt"
	"strings"
)

// oneLine is the first line of an error, and how many more there are: of the tables of a damaged
// folder each has a line.
func oneLine(err error) string {
	first, rest, more := strings.Cut(err.Error(), "\n")
	if !more {
		return first
	}
	return fmt.Sprintf("%s (and %d more)", first, 1+strings.Count(rest, "\n"))
}
