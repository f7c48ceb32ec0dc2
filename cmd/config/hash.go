package config

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

// Hash makes the hash of a password.
type Hash struct{}

func (c *Hash) Help() string {
	return `Reads a password from the terminal, twice and without showing it, or one line from standard input. Prints its hash by bcrypt, for the hashes of a user in a config file.

Examples:

    holdfast hash
    holdfast hash < password-file`
}

func (c *Hash) Run(p *terminal.Process) error {
	password, err := p.AskPassword(maxSecret)
	if err != nil {
		return err
	}
	hash, err := access.Hash(password)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Stdout, hash)
	return err
}
