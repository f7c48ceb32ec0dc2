package daemon

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// lookInterval is how often the files of certificates are looked at. Files that have changed are
// read when they stayed the same for one interval: a certificate and its key are two files.
const lookInterval = 2 * time.Second

// From soonExpired before its end on the server's certificate is logged each day.
const (
	soonExpired = 14 * 24 * time.Hour
	day         = 24 * time.Hour
)

// Certificates holds the certificates of TLSFiles. New handshakes take the present ones, and
// connections live on with those they began with. Any goroutine may call its methods.
type Certificates struct {
	files   TLSFiles
	log     *slog.Logger
	present atomic.Pointer[tls.Config]

	mu    sync.Mutex
	tried string // how the files were when they were read last
	seen  string // and when they were looked at
}

// NewCertificates reads the files; nil and no error without any.
func NewCertificates(files TLSFiles, log *slog.Logger) (*Certificates, error) {
	if files == (TLSFiles{}) {
		return nil, nil
	}
	if files.Cert == "" || files.Key == "" {
		return nil, errors.New("TLS needs the certificate of the server and its private key: expected a file of each (--tls-cert and --tls-key)")
	}
	c := &Certificates{files: files, log: log}
	_, err := c.Reload()
	return c, err
}

// Reload reads the files, and returns the flags of those with other certificates than before. After
// an error those before stay in force.
func (c *Certificates) Reload() (changed []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried = c.files.state()
	c.seen = c.tried
	config, err := c.files.load(time.Now())
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	if before := c.present.Swap(config); before != nil {
		if !before.Certificates[0].Leaf.Equal(config.Certificates[0].Leaf) {
			changed = append(changed, "tls-cert")
		}
		if !before.ClientCAs.Equal(config.ClientCAs) {
			changed = append(changed, "tls-client-ca")
		}
	}
	c.log.Info("certificates loaded", "certificate", c.files.Cert, "until", config.Certificates[0].Leaf.NotAfter)
	return changed, nil
}

// config is for listeners. Sessions are never resumed: one could outlive a CA that was taken away.
func (c *Certificates) config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.present.Load(), nil },
	}
}

// Mutual makes what two servers speak with that have the same ClientCA. Each asks the other for a
// certificate of it.
func (c *Certificates) Mutual() *tls.Config {
	config := c.present.Load().Clone()
	config.MinVersion, config.ClientAuth, config.RootCAs = tls.VersionTLS13, tls.RequireAndVerifyClientCert, config.ClientCAs
	return config
}

// until returns what says when the present one ends; nil without any.
func (c *Certificates) until() func() time.Time {
	if c == nil {
		return nil
	}
	return func() time.Time { return c.present.Load().Certificates[0].Leaf.NotAfter }
}

// Watch reloads the files when they have changed, until ctx ends. Files that are wrong are logged
// once.
func (c *Certificates) Watch(ctx context.Context) {
	if c == nil {
		return
	}
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for warned := (time.Time{}); ; {
		until := c.present.Load().Certificates[0].Leaf.NotAfter
		if now := time.Now(); now.After(until.Add(-soonExpired)) && now.Sub(warned) >= day {
			warned = now
			c.log.Warn("certificate expires: put a new one in its place", "certificate", c.files.Cert, "until", until)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if !c.changed() {
			continue
		}
		if _, err := c.Reload(); err != nil {
			c.log.Error("certificates not loaded: those before stay in force", "error", err)
		}
	}
}

// changed says that the files differ from what was read last, and not from the last look.
func (c *Certificates) changed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.seen
	c.seen = c.files.state()
	return c.seen == before && c.seen != c.tried
}

// state changes when a file does.
func (f TLSFiles) state() (all string) {
	for _, name := range []string{f.Cert, f.Key, f.ClientCA} {
		if info, err := os.Stat(name); err == nil {
			all += fmt.Sprintln(info.ModTime().UnixNano(), info.Size())
		} else {
			all += "missing\n"
		}
	}
	return all
}

// load reads the files, and checks that a server can work with them now.
func (f TLSFiles) load(now time.Time) (*tls.Config, error) {
	chain, cert, err := readCertificates(f.Cert)
	if err != nil {
		return nil, err
	}
	key, err := readLasting(f.Key)
	if err != nil {
		return nil, err
	}
	both, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s: expected the private key of the certificate in %s, in PEM and not encrypted: %w", f.Key, f.Cert, err)
	}
	switch leaf := chain[0]; {
	case now.After(leaf.NotAfter):
		return nil, fmt.Errorf("%s: the certificate expired at %v: expected one that is valid now", f.Cert, leaf.NotAfter)
	case now.Before(leaf.NotBefore):
		return nil, fmt.Errorf("%s: the certificate is valid from %v: expected one that is valid now", f.Cert, leaf.NotBefore)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{both}, MinVersion: tls.VersionTLS12,
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
	}
	if f.ClientCA == "" {
		return config, nil
	}
	all, _, err := readCertificates(f.ClientCA)
	if err != nil {
		return nil, err
	}
	config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, x509.NewCertPool() // others have passwords
	for _, ca := range all {
		if !ca.IsCA {
			return nil, fmt.Errorf("%s: the certificate of %q is not one of a CA, which certifies clients", f.ClientCA, cmp.Or(ca.Subject.CommonName, "no name"))
		}
		config.ClientCAs.AddCert(ca)
	}
	return config, nil
}

// readCertificates reads the certificates of a PEM file: one at least.
func readCertificates(name string) (all []*x509.Certificate, text []byte, err error) {
	if text, err = readLasting(name); err != nil {
		return nil, nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: certificate %d cannot be read: %w", name, len(all)+1, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("%s: no certificate found: expected PEM, with a line -----BEGIN CERTIFICATE-----", name)
	}
	return all, text, nil
}
