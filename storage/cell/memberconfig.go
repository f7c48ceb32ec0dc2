package cell

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// MemberConfig says which etcd a node runs.
type MemberConfig struct {
	Dir      string            // etcd's own folder, mode 0700; its parent is there
	Node     string            // the node's name
	Nodes    map[string]string // name to HOST:PORT of etcd's peers, what others dial; its own too
	Listen   string            // the IP:PORT that is bound; that of Nodes if empty, which is no name then
	Cell     string            // the id that the cell must have; any if empty
	Election time.Duration     // 500 ms unless given, at least 10 ms; a heartbeat is a tenth

	// CertFile, KeyFile and CAFile are PEM files: what this node shows, and who signs for all nodes.
	// Each handshake reads the first two; the start reads the last. Without them all addresses must be
	// of loopback.
	CertFile, KeyFile, CAFile string

	Logger *slog.Logger // has etcd's warnings and errors; none if nil

	quota int64 // of etcd's database in bytes; 2 GiB if 0
}

const (
	defaultQuota    = 2 << 30
	defaultElection = 500 * time.Millisecond
)

// ErrPlain says that others may reach an address, where nodes have no certificates.
var ErrPlain = errors.New("nodes on several hosts need certificates")

// url is the address of a peer as etcd wants it.
func (c MemberConfig) url(address string) url.URL {
	if c.CertFile == "" {
		return url.URL{Scheme: "http", Host: address}
	}
	return url.URL{Scheme: "https", Host: address}
}

// Check says what is wrong with the names and addresses. It wraps ErrPlain where that is it.
func (c MemberConfig) Check() error {
	if c.Nodes[c.Node] == "" {
		return fmt.Errorf("node %q is not among the nodes: name its own address too", c.Node)
	}
	for name, address := range c.Nodes {
		if name == "" || strings.ContainsAny(name, "=,/") {
			return fmt.Errorf("node name %q: expected some characters, none of them '=', ',' or '/'", name)
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		if c.CertFile == "" && !isLoopback(host) {
			return fmt.Errorf("node %s is at %s, beyond loopback: %w", name, address, ErrPlain)
		}
	}
	if host, _, _ := net.SplitHostPort(c.Listen); c.Listen != "" && c.CertFile == "" && !isLoopback(host) {
		return fmt.Errorf("others may reach %s: %w", c.Listen, ErrPlain)
	}
	return nil
}

func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// embed is etcd's own configuration, without its logger and its listener for clients.
func (c MemberConfig) embed(initialCluster string) (*embed.Config, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = c.Node, c.Dir
	own := c.url(c.Nodes[c.Node])
	cfg.AdvertisePeerUrls, cfg.ListenPeerUrls = []url.URL{own}, []url.URL{c.url(cmp.Or(c.Listen, own.Host))}
	cfg.InitialCluster, cfg.ClusterState = cmp.Or(initialCluster, c.Node+"="+own.String()), embed.ClusterStateFlagExisting
	if c.CertFile != "" {
		// A certificate of the cell's authority is enough: the address a node dials from may differ from
		// the one it is dialled at.
		cfg.PeerTLSInfo = transport.TLSInfo{
			CertFile: c.CertFile, KeyFile: c.KeyFile, TrustedCAFile: c.CAFile,
			ClientCertAuth: true, SkipClientSANVerify: true,
		}
		cfg.TlsMinVersion = "TLS1.3"
	}
	cfg.ElectionMs = uint(cmp.Or(c.Election, defaultElection).Milliseconds())
	cfg.TickMs = cfg.ElectionMs / 10
	// Raft keeps these entries in memory whatever their size, and one may have 256 KiB.
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = 1000, 50
	cfg.QuotaBackendBytes = cmp.Or(c.quota, defaultQuota)
	cfg.EnableGRPCGateway, cfg.AuthToken = false, "" // for clients that are not there
	return cfg, nil
}
