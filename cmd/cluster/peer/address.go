package peer

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

// Self says which node of a cell this is, and where the nodes are.
type Self struct {
	Node     string            // its name
	Nodes    map[string]string // of all nodes by name: HOST:PORT of etcd, which others dial. A node's own port is the next one
	Election time.Duration     // how long etcd waits for its leader; 0: 500 ms
	Listen   string            // the IP that both ports are bound at; "": that of Nodes, or all where that is a name
	TLS      daemon.TLSFiles   // what the node shows, and in ClientCA who signs for all nodes; none: loopback alone
}

// ErrPlain says that nodes lack certificates: others may reach an address, or there are users.
var ErrPlain = errors.New("nodes on several hosts, or with users, need certificates")

// Check says what is wrong with the names and addresses. It wraps ErrPlain where that is it.
func (c *Self) Check() error {
	if c.Nodes[c.Node] == "" {
		return fmt.Errorf("node %q is not among the nodes: name its own address too", c.Node)
	}
	for name, address := range c.Nodes {
		if name == "" || strings.ContainsAny(name, "=,/") {
			return fmt.Errorf("node name %q: expected some characters, none of them '=', ',' or '/'", name)
		}
		if _, err := NextPort(address); err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		host, _, _ := net.SplitHostPort(address)
		if c.TLS.Cert == "" && !isLoopback(host) {
			return fmt.Errorf("node %s is at %s, beyond loopback: %w", name, address, ErrPlain)
		}
	}
	if c.Listen != "" && c.TLS.Cert == "" && !isLoopback(c.Listen) {
		return fmt.Errorf("others may reach %s: %w", c.Listen, ErrPlain)
	}
	return nil
}

func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// NextPort is the address of the node's own port, whose etcd has another.
func NextPort(address string) (string, error) {
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

// Bound is where the node listens for those who dial an address.
func (c *Self) Bound(address string) string {
	host, port, _ := net.SplitHostPort(address)
	if net.ParseIP(host) == nil && host != "localhost" { // a name may lead to what stands before this machine
		host = anyHost()
	}
	return net.JoinHostPort(cmp.Or(c.Listen, host), port)
}

// anyHost binds all addresses of this machine, of IPv6 too where it has that.
func anyHost() string {
	l, err := net.Listen("tcp", "[::]:0")
	if err != nil {
		return "0.0.0.0"
	}
	_ = l.Close()
	return "::" // etcd refuses a bind address without a host
}

// Encryption is what makes the configuration of each connection between nodes that Check takes; nil
// and no error without certificates. It takes new files until ctx ends.
func (c *Self) Encryption(ctx context.Context, logger *slog.Logger) (func() *tls.Config, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
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
