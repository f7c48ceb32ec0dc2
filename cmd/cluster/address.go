package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

// ErrPlain says that others may reach an address of a node without certificates.
var ErrPlain = cell.ErrPlain

// check says what is wrong with names and addresses.
func (c *Config) check() error {
	_, err := nextPort(c.Nodes[c.Node])
	return cmp.Or(c.member("", nil).Check(), err)
}

// nextPort is the address of the node's own port, whose etcd has another.
func nextPort(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || number == 65535 {
		return "", fmt.Errorf("%q: expected a port from 1 to 65534, as the next one is the node's own", address)
	}
	return net.JoinHostPort(host, strconv.FormatUint(number+1, 10)), nil
}

// Asker returns what asks a node by its name what it is, and when the certificate of this node
// ends; the zero time without one. This node need not run. It is of use until ctx ends.
func (c *Config) Asker(ctx context.Context) (ask func(ctx context.Context, node string) (peer.Node, error), until time.Time, err error) {
	if err := c.check(); err != nil {
		return nil, until, err
	}
	encryption, err := c.encryption(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, until, err
	}
	if encryption != nil {
		until = encryption().Certificates[0].Leaf.NotAfter
	}
	client := peer.NewClient(encryption)
	return func(ctx context.Context, node string) (a peer.Node, err error) {
		own, err := nextPort(c.Nodes[node])
		if err == nil {
			a, err = client.Node(ctx, own)
		}
		return a, err
	}, until, nil
}

// bound is where the node listens for those who dial an address.
func (c *Config) bound(address string) string {
	host, port, _ := net.SplitHostPort(address)
	if net.ParseIP(host) == nil && host != "localhost" { // a name may lead to what stands before this machine
		host = "0.0.0.0"
	}
	return net.JoinHostPort(cmp.Or(c.Listen, host), port)
}

// encryption is what makes the configuration of each connection between nodes; nil and no error
// without certificates. It takes new files until ctx ends.
func (c *Config) encryption(ctx context.Context, logger *slog.Logger) (func() *tls.Config, error) {
	all, err := daemon.NewCertificates(c.TLS, logger)
	if all == nil || err != nil {
		return nil, err
	}
	config, between := all.Mutual(), x509.NewCertPool()
	own := config.Certificates[0]
	for _, der := range own.Certificate[1:] {
		if cert, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(cert)
		}
	}
	host, _, _ := net.SplitHostPort(c.Nodes[c.Node])
	_, err = own.Leaf.Verify(x509.VerifyOptions{
		DNSName: host, Roots: config.RootCAs, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: the other nodes would refuse this certificate: %w", c.TLS.Cert, err)
	}
	go all.Watch(ctx) // ends with ctx
	return all.Mutual, nil
}
