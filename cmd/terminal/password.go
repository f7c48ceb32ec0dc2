package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"
)

// AskPassword reads a password from the terminal, or a line of standard input: its first bytes up
// to most.
func (p *Process) AskPassword(most int64) (string, error) {
	if p.keyboard == nil || !term.IsTerminal(int(p.keyboard.Fd())) {
		line, err := bufio.NewReader(io.LimitReader(p.Stdin, most)).ReadString('\n')
		if err != nil && err != io.EOF {
			return "", fmt.Errorf("read the password: %w", err)
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	first, err := p.askHidden("Password: ")
	if err != nil {
		return "", err
	}
	second, err := p.askHidden("Again: ")
	if err == nil && first != second {
		err = errors.New("the two passwords differ: expected the same twice")
	}
	return first, err
}

// askHidden reads a line that the terminal does not show.
func (p *Process) askHidden(prompt string) (string, error) {
	fd := int(p.keyboard.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	fmt.Fprint(p.Stderr, prompt)
	defer fmt.Fprintln(p.Stderr)
	line, err := interruptibly(p.stop, func() ([]byte, error) { return term.ReadPassword(fd) })
	if err != nil {
		_ = term.Restore(fd, state) // an interrupted read leaves the terminal silent
		return "", fmt.Errorf("read the password: %w", err)
	}
	return string(line), nil
}
