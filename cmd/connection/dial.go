package connection

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto"
)

// Stream is a connection whose end can be sent before the replies are read.
type Stream interface {
	net.Conn
	CloseWrite() error
}

// connect connects to an address within a time, encrypted if config is not nil. The error is of
// dialling: nothing was sent that a server could carry out.
func connect(ctx context.Context, address string, timeout time.Duration, config *tls.Config) (Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if config == nil {
		return conn.(*net.TCPConn), nil
	}
	sealed := tls.Client(conn, ServerName(config, address))
	if err := sealed.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: conn.RemoteAddr(), Err: &handshakeError{err}}
	}
	return alerted{sealed}, nil
}

// alerted is an encrypted connection. A server that does not accept the client's certificate says
// so behind the handshake and hangs up. A write that fails by that returns what the server said.
type alerted struct{ *tls.Conn }

func (a alerted) Write(p []byte) (int, error) {
	n, err := a.Conn.Write(p)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		if _, said := a.Read(make([]byte, 1)); certificateError(said, "") != nil {
			err = said
		}
	}
	return n, err
}

// ServerName is a configuration for the host of an address.
func ServerName(config *tls.Config, address string) *tls.Config {
	config = config.Clone()
	host, _, _ := net.SplitHostPort(address)
	config.ServerName = cmp.Or(host, "localhost") // without a host this machine is dialled
	return config
}

// handshakeError is why a connection could not be encrypted.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// Dial connects to an address that a flag gave, within a time. The error says in words what is
// wrong, and what the flag has to do with it.
func (e *Encryption) Dial(ctx context.Context, address, flag string, timeout time.Duration) (Stream, error) {
	config, err := e.Config()
	if err != nil {
		return nil, err
	}
	conn, err := connect(ctx, address, timeout, config)
	if err != nil {
		return nil, dialError(err, address, flag)
	}
	return conn, nil
}

// dialError explains why there is no connection to an address that a flag gave.
func dialError(err error, address, flag string) error {
	if said := certificateError(err, address); said != nil {
		return said
	}
	var handshake *handshakeError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no server answers at %s: start one with \"holdfast serve\", or name its address with %s", address, flag)
	case !errors.As(err, &handshake) || errors.Is(err, context.Canceled):
		return fmt.Errorf("connect to %s: %w", address, err)
	case errors.As(err, &record), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the server at %s does not speak TLS (%w): check %s, and leave out --tls, --tls-ca and --tls-cert if it does not encrypt", address, handshake.err, flag)
	}
	return fmt.Errorf("the server at %s and this client found no way to encrypt: %w; if it asks for a client certificate, give --tls-cert and --tls-key", address, handshake.err)
}

// certificateError explains what is wrong with the certificate of the server or the client; nil if
// an error is about something else.
func certificateError(err error, address string) error {
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	const operator = "have the server's operator renew it, or check the clock of this machine"
	switch {
	case errors.As(err, &authority):
		return fmt.Errorf("the certificate of the server at %s is signed by an authority that is not trusted here: name the file of its CA with --tls-ca (%w)", address, authority)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(invalid.Cert.NotBefore):
		return fmt.Errorf("the certificate of the server at %s is valid from %s: %s", address, invalid.Cert.NotBefore.Format(time.RFC3339), operator)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("the certificate of the server at %s expired at %s: %s", address, invalid.Cert.NotAfter.Format(time.RFC3339), operator)
	case errors.As(err, &invalid):
		return fmt.Errorf("the certificate of the server at %s is not accepted: %w", address, err)
	case errors.As(err, &host):
		return fmt.Errorf("the server at %s has a certificate for other names: %v; use such a name in the address, or have the server's operator add this one", address, host)
	}
	var op *net.OpError
	for next := err; errors.As(next, &op); next = op.Err {
		if op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate") { // an alert, of which there is no type
			return fmt.Errorf("the server at %s does not accept this client: %w; give a valid certificate of the CA of its clients with --tls-cert and --tls-key", address, op.Err)
		}
	}
	return nil
}

// Explain says more of the error of a connection on which a server does not answer as it should. A
// server may look at a certificate when the handshake is over. It ends a connection that should be
// encrypted; two doors say why, the operator's in the words of net/http.
func (e *Encryption) Explain(err error, address string) error {
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
	ended = ended || err != nil && (strings.Contains(err.Error(), netproto.ErrPlain.Error()) || strings.Contains(err.Error(), "HTTP request to an HTTPS server"))
	switch said := certificateError(err, address); {
	case said != nil:
		return said
	case ended && !e.wanted():
		return fmt.Errorf("%w; if the server encrypts, give --tls-ca or --tls", terminal.Reword(strings.TrimSuffix(err.Error(), "."), err))
	}
	return err
}

// isDial tells whether an error is about making a connection.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
