package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

// hashCmd makes the hash of a password.
type hashCmd struct{}

func (c *hashCmd) Help() string {
	return `Reads a password from the terminal, twice and without showing it, or one line from standard input. Prints its hash by bcrypt, for the hashes of a user in a config file.

Examples:

    holdfast hash
    holdfast hash < password-file`
}

func (c *hashCmd) Run(p *Process) error {
	password, err := p.askPassword()
	if err != nil {
		return err
	}
	hash, err := access.Hash(password)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, hash)
	return err
}

// askPassword reads a password from the terminal, or a line of standard input.
func (p *Process) askPassword() (string, error) {
	if p.keyboard == nil || !term.IsTerminal(int(p.keyboard.Fd())) {
		line, err := bufio.NewReader(io.LimitReader(p.stdin, maxSecret)).ReadString('\n')
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
	fmt.Fprint(p.stderr, prompt)
	defer fmt.Fprintln(p.stderr)
	line, err := interruptibly(p.stop, func() ([]byte, error) { return term.ReadPassword(fd) })
	if err != nil {
		_ = term.Restore(fd, state) // an interrupted read leaves the terminal silent
		return "", fmt.Errorf("read the password: %w", err)
	}
	return string(line), nil
}
