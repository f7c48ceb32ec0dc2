package connection

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/holdfast-queue/holdfast/cmd/config"
)

// Encryption is the flags that say how a connection is encrypted.
type Encryption struct {
	TLS     bool   `name:"tls" help:"Encrypt the connection. A CA that this machine trusts must have signed the server's certificate."`
	TLSCA   string `name:"tls-ca" placeholder:"FILE" help:"Encrypt it, and trust the CAs in this file instead, in PEM."`
	TLSCert string `name:"tls-cert" and:"certificate" placeholder:"FILE" help:"Encrypt it, and show this client certificate, in PEM: it can say who the user is."`
	TLSKey  string `name:"tls-key" and:"certificate" placeholder:"FILE" help:"Private key of the client certificate."`
}

// wanted says whether there is encryption.
func (e *Encryption) wanted() bool { return e.TLS || e.TLSCA != "" || e.TLSCert != "" }

// Config is what the flags say; nil without encryption.
func (e *Encryption) Config() (*tls.Config, error) {
	if !e.wanted() {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.TLSCA != "" {
		text, err := os.ReadFile(e.TLSCA)
		if err != nil {
			return nil, fmt.Errorf("read the CA of the server: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("file %s of --tls-ca holds no certificate: expected one or more in PEM", e.TLSCA)
		}
	}
	if e.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(e.TLSCert, e.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate %s and its key %s: %w", e.TLSCert, e.TLSKey, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Login is the flags that say who the user is.
type Login struct {
	User     string        `placeholder:"NAME" help:"User to log in as (default: default, if there is a password)."`
	Password config.Secret `name:"password-file" aliases:"redis-password-file" placeholder:"FILE" help:"File that holds the password; a line break at its end does not count. $$HOLDFAST_PASSWORD can hold the password itself."`
}

// Read is a name and a password; the name may be empty, and without a password both are.
func (l *Login) Read() (user, password string, err error) {
	password, err = l.Password.Read()
	if err == nil && l.User != "" && password == "" {
		err = errors.New("user " + l.User + " needs a password: give it with HOLDFAST_PASSWORD or --password-file")
	}
	return l.User, password, err
}
