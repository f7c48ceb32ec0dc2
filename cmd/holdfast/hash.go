package main

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
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

func (c *hashCmd) Run(p *terminal.Process) error {
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
