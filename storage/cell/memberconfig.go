package cell

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
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
	Listen   string            // the HOST:PORT that is bound; that of Nodes if empty
	Cell     string            // the id that the cell must have; any if empty
	Election time.Duration     // 500 ms unless given, at least 10 ms; a heartbeat is a tenth

	// CertFile, KeyFile and CAFile are PEM files: what this node shows, and who signs for all nodes.
	// Without them all addresses must be of loopback.
	CertFile, KeyFile, CAFile string

	Logger *slog.Logger // has etcd's warnings and errors; none if nil

	quota int64 // of etcd's database in bytes; 2 GiB if 0
}

const (
	defaultQuota    = 2 << 30
	defaultElection = 500 * time.Millisecond
	// longestSocket is what a socket's path may have in bytes. The least limit of a system is 103.
	longestSocket = 90
	socketName    = "client.sock"
)

func (c MemberConfig) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

func (c MemberConfig) election() time.Duration {
	if c.Election == 0 {
		return defaultElection
	}
	return c.Election
}

// url is the address of a peer as etcd wants it.
func (c MemberConfig) url(address string) url.URL {
	if c.CertFile == "" {
		return url.URL{Scheme: "http", Host: address}
	}
	return url.URL{Scheme: "https", Host: address}
}

// check says what is wrong with the names and addresses.
func (c MemberConfig) check() error {
	if _, ok := c.Nodes[c.Node]; !ok {
		return fmt.Errorf("node %q is not among the nodes: name its own address too", c.Node)
	}
	for name, address := range c.Nodes {
		if name == "" || strings.ContainsAny(name, "=,/") {
			return fmt.Errorf("node name %q: expected some characters, none of them '=', ',' or '/'", name)
		}
		if err := c.checkAddress(address); err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
	}
	if c.Listen == "" {
		return nil
	}
	return c.checkAddress(c.Listen)
}

func (c MemberConfig) checkAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	ip, err := netip.ParseAddr(host)
	if c.CertFile == "" && host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("address %s is not of loopback: nodes on several hosts need certificates", address)
	}
	return nil
}

// embed is etcd's own configuration. Who calls it sets the state of the cluster and the logger.
func (c MemberConfig) embed() (*embed.Config, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = c.Node, c.Dir
	own, listen := c.url(c.Nodes[c.Node]), c.url(c.Listen)
	if c.Listen == "" {
		listen = own
	}
	cfg.AdvertisePeerUrls, cfg.ListenPeerUrls = []url.URL{own}, []url.URL{listen}
	cfg.InitialCluster, cfg.ClusterState = c.Node+"="+own.String(), embed.ClusterStateFlagExisting
	if c.CertFile != "" {
		// A certificate of the cell's authority is enough: the address a node dials from may differ from
		// the one it is dialled at.
		cfg.PeerTLSInfo = transport.TLSInfo{
			CertFile: c.CertFile, KeyFile: c.KeyFile, TrustedCAFile: c.CAFile,
			ClientCertAuth: true, SkipClientSANVerify: true,
		}
		cfg.TlsMinVersion = "TLS1.3"
	}
	cfg.ElectionMs = uint(c.election().Milliseconds())
	cfg.TickMs = cfg.ElectionMs / 10
	// Raft keeps these entries in memory whatever their size, and one may have 256 KiB.
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = 1000, 50
	if cfg.QuotaBackendBytes = c.quota; c.quota == 0 {
		cfg.QuotaBackendBytes = defaultQuota
	}
	cfg.EnableGRPCGateway = false
	return cfg, nil
}

// socketFolder puts the listener for clients that etcd wants, and nobody uses, into etcd's folder.
// Where that path is too long it makes a folder for it, which it returns: its user deletes it.
func socketFolder(cfg *embed.Config, dir string) (string, error) {
	own := ""
	path, err := filepath.Abs(filepath.Join(dir, socketName))
	if err == nil && len(path) > longestSocket {
		if own, err = os.MkdirTemp("", "holdfast-"); err == nil {
			path = filepath.Join(own, socketName)
		}
	}
	socket := []url.URL{{Scheme: "unix", Path: path}}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = socket, socket
	return own, err
}
