package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/certs"
	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

// neighbours is a cell of which other nodes than a run.
type neighbours struct {
	t  *testing.T
	ca *certs.Authority
	peer.Self
}

func newNeighbours(t *testing.T) *neighbours {
	t.Helper()
	ca, err := certs.New("test", hours(24*100))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	n := &neighbours{t, ca, peer.Self{
		Node: "a", Nodes: map[string]string{"a": nowhere(t)},
		TLS: daemon.TLSFiles{Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"), ClientCA: filepath.Join(dir, "ca")},
	}}
	n.certify(24 * 100)
	return n
}

// nowhere is an address that nobody listens at.
func nowhere(t *testing.T) string {
	t.Helper()
	l, _ := twoPorts(t)
	defer l.Close()
	return l.Addr().String()
}

func hours(n int) certs.Span {
	return certs.Span{From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Duration(n) * time.Hour)}
}

// certify gives node a a certificate that holds for some hours.
func (n *neighbours) certify(h int) {
	n.t.Helper()
	p, err := n.ca.Node("a", "127.0.0.1", hours(h))
	if err := errors.Join(err, os.WriteFile(n.TLS.Cert, p.Cert, 0o600), os.WriteFile(n.TLS.Key, p.Key, 0o600), os.WriteFile(n.TLS.ClientCA, n.ca.Cert, 0o600)); err != nil {
		n.t.Fatal(err)
	}
}

// twoPorts are listeners of a port and the next one.
func twoPorts(t *testing.T) (first, second net.Listener) {
	t.Helper()
	for range 100 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		next := net.JoinHostPort("127.0.0.1", strconv.Itoa(first.Addr().(*net.TCPAddr).Port+1))
		if second, err = net.Listen("tcp", next); err == nil {
			t.Cleanup(func() { _, _ = first.Close(), second.Close() })
			return first, second
		}
		_ = first.Close()
	}
	t.Fatal("no two free ports in a row")
	return nil, nil
}

// run runs a node whose certificate is of an authority.
func (n *neighbours) run(ca *certs.Authority, about peer.Node) {
	n.t.Helper()
	p, err := ca.Node(about.Name, "127.0.0.1", hours(1))
	if err != nil {
		n.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		n.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(n.ca.Cert)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	etcd, own := twoPorts(n.t)
	n.Nodes[about.Name] = etcd.Addr().String()
	s := peer.New(peer.Config{TLS: config.Clone, Logger: slog.New(slog.DiscardHandler), Node: func() peer.Node { return about }})
	go func() { _ = s.Serve(own) }() // ends with Close
	n.t.Cleanup(s.Close)
}

func TestTheNodesOfACellAreExamined(t *testing.T) {
	cell := newNeighbours(t)
	stranger, err := certs.New("stranger", hours(1))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	cell.run(cell.ca, peer.Node{Cell: "x", Name: "b", Role: "owner", Version: "1", Clock: now})
	cell.run(cell.ca, peer.Node{Cell: "x", Name: "c", Role: "follower", Version: "2", Clock: now})
	cell.run(cell.ca, peer.Node{Cell: "x", Name: "d", Role: "follower", Version: "1", Clock: now - 60_000})
	cell.run(cell.ca, peer.Node{Cell: "y", Name: "e", Role: "follower", Version: "1", Clock: now})
	cell.run(stranger, peer.Node{Name: "f"})
	cell.Nodes["g"], cell.Nodes["h"] = nowhere(t), "nowhere.invalid:7380"
	findings := ExamineNodes(filepath.Join(t.TempDir(), "missing"), &cell.Self)
	check(t, "certificate", find(t, findings, "certificate"), OK, "holds for 99 days")
	find(t, findings, "room")
	for name, row := range map[string]struct {
		verdict Verdict
		want    string
	}{
		"a": {OK, "does not run"},
		"b": {OK, "owner of version 1"},
		"c": {Warn, "run the version of node b"},
		"d": {Warn, "set its clock"},
		"e": {Bad, "another cell than node b"},
		"f": {Bad, "unknown authority"},
		"g": {Warn, "open this port and the next one"},
		"h": {Bad, "or an IP address"},
	} {
		for _, f := range findings {
			if f.Name == "node" && (strings.HasPrefix(f.Seen, name+" ") || strings.HasPrefix(f.Seen, name+":")) {
				check(t, name, f, row.verdict, row.want)
				row.want = ""
			}
		}
		if row.want != "" {
			t.Errorf("no finding of %s", name)
		}
	}
	cell.certify(24)
	check(t, "certificate", find(t, ExamineNodes(t.TempDir(), &cell.Self), "certificate"), Warn, "tls renew")
	cell.Nodes["a"] = "192.0.2.1:7380"
	check(t, "certificate", find(t, ExamineNodes(t.TempDir(), &cell.Self), "certificate"), Bad, "valid for 127.0.0.1")
}

func TestTheRoomForEtcdIsExamined(t *testing.T) {
	const gib = 1 << 30
	check(t, "enough", roomFor(gib, 4*gib), OK, "which needs 320 MiB")
	check(t, "too little", roomFor(gib/2, 8*gib), Bad, "free ")
}
