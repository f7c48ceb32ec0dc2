package main

import (
	"fmt"
	"strings"
)

// sentence is an error as one line. Of errors that were joined, of which there may be one for each
// file of a folder, it tells the first and how many more there are.
func sentence(err error) string {
	text := err.Error()
	for _, joined := range joins(err) {
		parts := joined.Unwrap()
		few := parts[0].Error()
		if len(parts) > 1 {
			few += fmt.Sprintf(" (and %d more)", len(parts)-1)
		}
		text = strings.Replace(text, joined.Error(), few, 1)
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// join is what errors.Join makes. An error of several that says more than each of them is none.
type join interface {
	error
	Unwrap() []error
}

// joins lists those in an error, an outer one before those in its first part.
func joins(err error) []join {
	switch e := err.(type) {
	case join:
		parts := e.Unwrap()
		var texts []string
		for _, part := range parts {
			texts = append(texts, part.Error())
		}
		if strings.Join(texts, "\n") == e.Error() {
			return append([]join{e}, joins(parts[0])...)
		}
		var all []join
		for _, part := range parts {
			all = append(all, joins(part)...)
		}
		return all
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return joins(inner)
		}
	}
	return nil
}
