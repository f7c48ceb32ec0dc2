package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nodeTLS is how a node speaks to others, with what its folder has.
func nodeTLS(t *testing.T, folder string) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "node.pem"), filepath.Join(folder, "node-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	nodes := x509.NewCertPool()
	nodes.AddCert(readCert(t, folder, "ca"))
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: nodes, ClientCAs: nodes, ClientAuth: tls.RequireAndVerifyClientCert, SessionTicketsDisabled: true}
}

// meet has a node dial another one by its host.
func meet(t *testing.T, dials, accepts *tls.Config, host string) (asked, answered error) {
	t.Helper()
	dials = dials.Clone()
	dials.ServerName = host
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	ended := make(chan error, 1)
	go func() { // ends with the handshake
		ended <- tls.Server(far, accepts).Handshake()
		_ = far.Close()
	}()
	asked = tls.Client(near, dials).Handshake()
	_ = near.Close()
	return asked, <-ended
}

func TestTheNodesOfACellKnowEachOtherAndNobodyElse(t *testing.T) {
	dir := tlsFolder(t, "--nodes", "a=10.0.0.1,b=b.example:17380,c=[fd00::3]:7380")
	nodes := make(map[string]*tls.Config)
	for name, host := range map[string]string{"a": "10.0.0.1", "b": "b.example", "c": "fd00::3"} {
		nodes[name] = nodeTLS(t, filepath.Join(dir, name))
		for other := range nodes {
			if asked, answered := meet(t, nodes[other], nodes[name], host); asked != nil || answered != nil {
				t.Errorf("%s dials %s: %v, %v", other, name, asked, answered)
			}
		}
	}
	if asked, _ := meet(t, nodes["b"], nodes["a"], "10.0.0.2"); asked == nil {
		t.Error("a node is taken by a host that is not its own")
	}
	strange := nodeTLS(t, filepath.Join(tlsFolder(t, "--nodes", "b=b.example"), "b"))
	strange.RootCAs = nodes["a"].RootCAs
	if _, answered := meet(t, strange, nodes["a"], "10.0.0.1"); answered == nil {
		t.Error("the node of another cell is taken")
	}
	for _, key := range []string{"cell-ca-key.pem", "a/node-key.pem"} {
		if info, err := os.Stat(filepath.Join(dir, key)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", key, info.Mode(), err)
		}
	}
}

func TestACellGetsAnotherNodeAndItsCertificatesAreRenewed(t *testing.T) {
	dir := tlsFolder(t, "--nodes", "a=a.example,b=b.example", "--days", "9")
	before := nodeTLS(t, filepath.Join(dir, "a"))
	oneErrorLine(t, cli(t, "tls", "init", dir, "--nodes", "c=c.example,b=b.example"), exitFailed, "nothing is overwritten")
	if _, err := os.Stat(filepath.Join(dir, "c")); err == nil {
		t.Error("a run that was refused has made a folder")
	}
	for _, args := range [][]string{{"init", dir, "--nodes", "c=c.example"}, {"renew", dir, "--nodes"}} {
		if r := cli(t, append([]string{"tls"}, args...)...); r.code != exitOK || !strings.Contains(r.stdout, filepath.Join(dir, "c", "node.pem")) {
			t.Fatalf("%v: %+v", args, r)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		cert := readCert(t, filepath.Join(dir, name), "node")
		if want := time.Now().AddDate(0, 0, 365); cert.NotAfter.Sub(want).Abs() > time.Hour || cert.Subject.CommonName != name {
			t.Errorf("%s holds until %v, want %v", cert.Subject.CommonName, cert.NotAfter, want)
		}
		after := nodeTLS(t, filepath.Join(dir, name))
		if asked, answered := meet(t, before, after, name+".example"); asked != nil || answered != nil {
			t.Errorf("a with its old certificate dials %s: %v, %v", name, asked, answered)
		}
		if asked, answered := meet(t, after, before, "a.example"); asked != nil || answered != nil {
			t.Errorf("%s dials a with its old certificate: %v, %v", name, asked, answered)
		}
	}
}

func TestTLSRefusesNodesThatAreNone(t *testing.T) {
	dir := tlsFolder(t)
	for name, row := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no host":             {[]string{"init", dir, "--nodes", "a"}, exitUsage, "expected NAME=HOST"},
		"a path for a name":   {[]string{"init", dir, "--nodes", "../a=a.example"}, exitUsage, "expected NAME=HOST"},
		"not a host":          {[]string{"init", dir, "--nodes", "a=a b"}, exitUsage, "expected NAME=HOST"},
		"a node twice":        {[]string{"init", dir, "--nodes", "a=x,a=y"}, exitUsage, "a name of its own"},
		"nodes and a client":  {[]string{"init", dir, "--nodes", "a=x", "--client", "anna"}, exitUsage, "in another run"},
		"nobody to renew":     {[]string{"renew", dir, "--nodes"}, exitFailed, "has no folders of nodes"},
		"to renew clients":    {[]string{"renew", dir, "--nodes", "--client", "operator"}, exitUsage, "in another run"},
		"a name of the CA":    {[]string{"init", dir, "--client", "cell-ca"}, exitUsage, "expected a name"},
		"a node where a file": {[]string{"init", dir, "--nodes", "ca.pem=x"}, exitFailed, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			oneErrorLine(t, cli(t, append([]string{"tls"}, row.args...)...), row.code, row.want)
		})
	}
}
