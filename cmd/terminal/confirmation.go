package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Confirmation is the flag of a command that does what cannot be undone.
type Confirmation struct {
	Yes bool `short:"y" help:"Do not ask first. Needed where standard input is no terminal."`
}

// ErrNotConfirmed means that nobody said yes in advance, and nobody can be asked.
var ErrNotConfirmed = errors.New("confirm it with --yes")

// Confirm asks whether to do something, such as "delete 5 packets". An error says that nothing was
// done.
func (c *Confirmation) Confirm(p *Process, something string) error {
	if c.Yes {
		return nil
	}
	if p.keyboard == nil || terminalOf(p.keyboard) == nil {
		return fmt.Errorf("this would %s: %w", something, ErrNotConfirmed)
	}
	fmt.Fprintf(p.Stderr, "%s? [y/N] ", strings.ToUpper(something[:1])+something[1:])
	answer, err := bufio.NewReader(p.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("nothing was done: %w", err)
	}
	return errors.New("nothing was done")
}

// Reads says in a terminal that a command reads what is typed there, which nothing else would show.
func (p *Process) Reads(what string) {
	if p.keyboard != nil && terminalOf(p.keyboard) != nil {
		fmt.Fprintf(p.Stderr, "holdfast: reading %s from the terminal until Ctrl-D\n", what)
	}
}
