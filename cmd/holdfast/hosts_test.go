package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// cellNode is a node of a cell. It runs inside the test.
type cellNode struct {
	t                   *testing.T
	name, data          string
	etcd, own, redis    string // addresses
	certificates, nodes string // as serve takes them
	stop                func()
	mu                  sync.Mutex
	log                 bytes.Buffer
	logged              chan struct{} // holds one when the log has grown
}

// newCell is three nodes on loopback with the certificates of a folder, none of which runs.
func newCell(t *testing.T, certificates string) (nodes []*cellNode) {
	t.Helper()
	var list []string
	for _, name := range []string{"a", "b", "c"} {
		port := freePorts(t, 3)
		at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", port+i) }
		nodes = append(nodes, &cellNode{
			t: t, name: name, data: filepath.Join(t.TempDir(), name), etcd: at(0), own: at(1), redis: at(2),
			certificates: filepath.Join(certificates, name), logged: make(chan struct{}, 1),
		})
		list = append(list, name+"="+at(0))
	}
	for _, n := range nodes {
		n.nodes = strings.Join(list, ",")
	}
	return nodes
}

// freePorts is the first of some ports in a row that nobody listens at. They are below those that a
// system gives to who dials.
func freePorts(t *testing.T, count int) int {
	t.Helper()
	for range 1000 {
		first, free := 10_000+rand.IntN(22_000), true
		for port := first; port < first+count && free; port++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if free = err == nil; free {
				_ = l.Close()
			}
		}
		if free {
			return first
		}
	}
	t.Fatal("no free ports in a row")
	return 0
}

// Write implements io.Writer for the log.
func (n *cellNode) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case n.logged <- struct{}{}:
	default:
	}
	return n.log.Write(b)
}

// says waits until a line of the log of this run has all of some texts.
func (n *cellNode) says(texts ...string) {
	n.t.Helper()
	late := time.After(patience)
	for {
		n.mu.Lock()
		log := n.log.String()
		n.mu.Unlock()
	lines:
		for line := range strings.Lines(log) {
			for _, text := range texts {
				if !strings.Contains(line, text) {
					continue lines
				}
			}
			return
		}
		select {
		case <-n.logged:
		case <-late:
			n.t.Fatalf("node %s never says %q:\n%s", n.name, texts, log)
		}
	}
}

// start runs the node until the test ends or stop is called.
func (n *cellNode) start() {
	n.mu.Lock()
	n.log.Reset()
	n.mu.Unlock()
	r := command{stderr: n}.start(n.t, "serve", "--data", n.data, "--node", n.name, "--nodes", n.nodes, "--cluster-tls", n.certificates, "--cluster-listen", "127.0.0.1",
		"--redis", n.redis, "--pinpriq", "off", "--barbershop", "off", "--admin", "off")
	n.stop = sync.OnceFunc(func() {
		r.interrupt()
		<-r.ended
	})
	n.t.Cleanup(n.stop)
}

// startCell founds a cell and waits until all nodes have a vote. The first one owns.
func startCell(t *testing.T, certificates string) []*cellNode {
	t.Helper()
	nodes := newCell(t, certificates)
	if r := cli(t, "cluster", "found", "--node", nodes[0].name, nodes[0].data); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	for _, n := range nodes {
		n.start()
		if n == nodes[0] {
			n.says("this node owns the queues")
		} else {
			nodes[0].says("node joined", "node="+n.name)
		}
	}
	return nodes
}

// push pushes a packet by way of a node.
func (n *cellNode) push() {
	n.t.Helper()
	conn, err := net.Dial("tcp", n.redis)
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	reply := make([]byte, 64)
	_, _ = io.WriteString(conn, "LPUSH q hello\r\n")
	if count, err := conn.Read(reply); err != nil || reply[0] != ':' {
		n.t.Errorf("a push by way of %s: %q, %v", n.name, reply[:count], err)
	}
}

// showsCert is the certificate of a port, as one sees it who shows that of a folder; "": none.
func showsCert(t *testing.T, address, folder string) (serial string, err error) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if folder != "" {
		config = nodeTLS(t, folder)
		config.ServerName, config.InsecureSkipVerify = "127.0.0.1", true
	}
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, "GET /node HTTP/1.1\r\nHost: node\r\n\r\n")
	_, err = conn.Read(make([]byte, 1)) // TLS 1.3 tells only then that it is refused
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String(), err
}

func TestNodesOfACellSpeakTLSAndTakeRenewedCertificatesWhileTheyRun(t *testing.T) {
	t.Parallel()
	dir := tlsFolder(t, "--nodes", "a=127.0.0.1,b=127.0.0.1,c=127.0.0.1")
	other := tlsFolder(t, "--nodes", "c=127.0.0.1")
	nodes := startCell(t, dir)
	a, b, c := nodes[0], nodes[1], nodes[2]
	b.push()

	for _, port := range []struct{ address, told string }{{a.own, "handshake failed"}, {a.etcd, "rejected connection on peer endpoint"}} {
		for name, folder := range map[string]string{"didn't provide a certificate": "", "unknown authority": filepath.Join(other, "c")} {
			if _, err := showsCert(t, port.address, folder); err == nil || !strings.Contains(err.Error(), "certificate") {
				t.Errorf("%s at %s: %v", name, port.address, err)
			}
			a.says(port.told, name)
		}
		conn, err := net.Dial("tcp", port.address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET /node HTTP/1.1\r\nHost: node\r\n\r\n")
		a.says(port.told, conn.LocalAddr().String())
		_ = conn.Close()
	}

	before, err := showsCert(t, a.own, filepath.Join(dir, "b"))
	if err != nil {
		t.Fatal(err)
	}
	if r := cli(t, "tls", "renew", dir, "--nodes"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	for _, address := range []string{a.own, a.etcd} {
		for begun, serial := time.Now(), before; serial == before; serial, err = showsCert(t, address, filepath.Join(dir, "b")) {
			if time.Since(begun) > patience {
				t.Fatalf("%s still shows the old certificate", address)
			}
			if err != nil {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
	b.push()
	b.stop()
	b.start()
	b.says("queues are owned by", "owner=a")
	b.push()

	c.stop()
	if err := os.RemoveAll(c.data); err != nil {
		t.Fatal(err)
	}
	c.certificates = filepath.Join(other, "c")
	c.start()
	c.says("the node waits for the cell that it joins", "certificate")
	c.stop()
	c.certificates = filepath.Join(dir, "c")
	c.start()
	c.says("queues are owned by", "owner=a")
	c.push()
}

func TestANodeWithoutItsCertificatesDoesNotStart(t *testing.T) {
	dir := tlsFolder(t, "--nodes", "a=10.0.0.1,b=10.0.0.2")
	nodes := "a=10.0.0.1,b=10.0.0.2"
	for name, row := range map[string]struct {
		args []string
		code int
		want string
	}{
		"plain beyond loopback":   {[]string{"--nodes", nodes}, exitFailed, "--cluster-tls"},
		"plain, bound for others": {[]string{"--nodes", "a=127.0.0.1", "--cluster-listen", "0.0.0.0"}, exitFailed, "--cluster-tls"},
		"the folder of all nodes": {[]string{"--nodes", nodes, "--cluster-tls", dir}, exitFailed, "node.pem"},
		"that of another node":    {[]string{"--nodes", nodes, "--cluster-tls", filepath.Join(dir, "b")}, exitFailed, "valid for 10.0.0.2, not 10.0.0.1"},
		"a port to be bound":      {[]string{"--nodes", nodes, "--cluster-listen", "10.0.0.1:7380"}, exitUsage, "without a port"},
		"a name to be bound":      {[]string{"--nodes", nodes, "--cluster-listen", "a.example"}, exitUsage, "expected an IP address"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"serve", "--data", t.TempDir(), "--node", "a", "--pinpriq", "off", "--barbershop", "off", "--admin", "off", "--redis", "127.0.0.1:0"}, row.args...)
			oneErrorLine(t, cli(t, args...), row.code, row.want)
		})
	}
}
