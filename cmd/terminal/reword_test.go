package terminal

import (
	"errors"
	"fmt"
	"testing"
)

func TestAnErrorIsOneLine(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	for want, err := range map[string]error{
		"a":                    a,
		"open: a: b":           fmt.Errorf("open: %w: %w", a, b),
		"open: a (and 2 more)": fmt.Errorf("open: %w", errors.Join(a, b, c)),
		"alone":                errors.Join(errors.New("alone")),
	} {
		if got := OneLine(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
