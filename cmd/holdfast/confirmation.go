package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// confirmation is the flag of a command that does what cannot be undone.
type confirmation struct {
	Yes bool `short:"y" help:"Do not ask first. Needed where standard input is no terminal."`
}

// errNotConfirmed means that nobody said yes in advance, and nobody can be asked.
var errNotConfirmed = errors.New("confirm it with --yes")

// confirm asks whether to do something, such as "delete 5 packets". An error says that nothing was
// done.
func (c *confirmation) confirm(p *Process, something string) error {
	if c.Yes {
		return nil
	}
	if p.keyboard == nil || terminalOf(p.keyboard) == nil {
		return fmt.Errorf("this would %s: %w", something, errNotConfirmed)
	}
	fmt.Fprintf(p.stderr, "%s? [y/N] ", strings.ToUpper(something[:1])+something[1:])
	answer, err := bufio.NewReader(p.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("nothing was done: %w", err)
	}
	return errors.New("nothing was done")
}
