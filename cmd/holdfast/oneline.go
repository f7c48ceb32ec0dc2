package main

import (
	"fmt"
	"strings"
)

// oneLine is the first line of an error, and the number of the others. The error of a damaged
// folder has a line for each table.
func oneLine(err error) string {
	first, rest, more := strings.Cut(err.Error(), "\n")
	if !more {
		return first
	}
	return fmt.Sprintf("%s (and %d more)", first, 1+strings.Count(rest, "\n"))
}
