package config

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/holdfast-queue/holdfast/cmd/certs"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// tlsRenewCmd renews certificates that tls init has made.
type tlsRenewCmd struct {
	certFolder
	Client []string `placeholder:"NAME" sep:"none" help:"Name of a client. May be given more than once (default: the server is renewed)."`
	Nodes  bool     `help:"Renew the certificates of all nodes of a cell."`
}

func (c *tlsRenewCmd) Help() string {
	return `Puts a new certificate and a new key in the place of the old ones. It has the same names, the same CA, and the owner and rights of the old files. A running server takes it within some seconds, and keeps its connections.

Examples:

    holdfast tls renew certs
    holdfast tls renew certs --client worker --days 90
    holdfast tls renew cell --nodes`
}

func (c *tlsRenewCmd) Validate() error {
	if c.Nodes && len(c.Client) > 0 {
		return errors.New("--nodes has an authority of its own: renew the certificates of clients in another run")
	}
	return checkClients(c.Client)
}

func (c *tlsRenewCmd) Run(p *terminal.Process) error {
	by, names := "ca", c.Client
	switch {
	case c.Nodes:
		by = cellCA
		found, _ := filepath.Glob(c.file(nodePair("*") + ".pem")) // which is a pattern
		for _, cert := range found {
			names = append(names, nodePair(filepath.Base(filepath.Dir(cert))))
		}
		if len(names) == 0 {
			return fmt.Errorf("%s has no folders of nodes: \"holdfast tls init --nodes\" makes them", c.Dir)
		}
	case len(names) == 0:
		names = []string{"server"}
	}
	ca, err := c.load(by)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := c.renew(p, ca, by, name); err != nil {
			return err
		}
	}
	return nil
}

// renew puts a new pair in the place of one, and names its files. The files of the CA have the name
// by.
func (c *tlsRenewCmd) renew(p *terminal.Process, ca *certs.Authority, by, name string) error {
	old, err := c.read(name, by)
	if err != nil {
		return err
	}
	pair, err := ca.Renew(old, c.span())
	if err != nil {
		return err
	}
	cert, key := c.file(name+".pem"), c.file(name+"-key.pem")
	if err := cmp.Or(writeBeside(key, pair.Key), writeBeside(cert, pair.Cert)); err != nil {
		return err
	}
	for _, file := range []string{key, cert} {
		if err := os.Rename(file+".new", file); err != nil {
			return fmt.Errorf("replace %s: %w", file, terminal.Pathless(err))
		}
	}
	_, err = fmt.Fprintf(p.Stdout, "%s\n%s\n", cert, key)
	return err
}

// writeBeside writes what is to replace a file as FILE.new, for the same users: a server that is
// not who renews must go on reading its key.
func writeBeside(file string, text []byte) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, terminal.Pathless(err))
	}
	beside := file + ".new"
	_ = os.Remove(beside) // of a renewal that was cut short
	if err := writeNew(beside, text, 0o600); err != nil {
		return err
	}
	if of, ok := info.Sys().(*syscall.Stat_t); ok {
		err = os.Chown(beside, int(of.Uid), int(of.Gid))
	}
	if err = cmp.Or(err, os.Chmod(beside, info.Mode().Perm())); err != nil {
		return fmt.Errorf("give %s the owner and the rights of %s: %w", beside, file, terminal.Pathless(err))
	}
	return nil
}

// read reads a certificate that the CA of the folder has signed.
func (c *tlsRenewCmd) read(name, by string) (*x509.Certificate, error) {
	var all []*x509.Certificate
	for _, file := range []string{c.file(name + ".pem"), c.file(by + ".pem")} {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, terminal.Pathless(err))
		}
		block, _ := pem.Decode(text)
		if block == nil {
			return nil, fmt.Errorf("%s holds no certificate in PEM", file)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		all = append(all, cert)
	}
	if err := all[0].CheckSignatureFrom(all[1]); err != nil {
		return nil, fmt.Errorf("%s is not of the CA in %s: have the one who made it renew it", c.file(name+".pem"), c.file(by+".pem"))
	}
	return all[0], nil
}
