package cluster

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// freePorts returns the first of n ports in a row that were free a moment ago. They are below those
// that connections get.
func freePorts(t *testing.T, n int) (port int) {
	t.Helper()
	if !await(limit, func() bool {
		port = 10_000 + rand.IntN(22_000)
		for next := port; next < port+n; next++ {
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", next))
			if err != nil {
				return false
			}
			_ = l.Close()
		}
		return true
	}) {
		t.Fatal("no free ports in a row")
	}
	return port
}

func TestMakeClusterIsThreeNodesUntilItIsInterrupted(t *testing.T) {
	binary, port := build(t), freePorts(t, 12)
	makes := exec.Command("make", "-C", "../..", "--old-file=build", "cluster", "BIN="+binary, "CELL="+filepath.Join(t.TempDir(), "cell"), fmt.Sprint("PORT=", port))
	makes.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's ^C goes to all of them
	makes.Stdout, makes.Stderr, makes.WaitDelay = t.Output(), t.Output(), limit
	must(t, makes.Start())
	ended := make(chan error, 1)
	go func() { ended <- makes.Wait() }()
	t.Cleanup(func() { _ = syscall.Kill(-makes.Process.Pid, syscall.SIGKILL) })

	at := func(offset int) string { return fmt.Sprint("127.0.0.1:", port+offset) }
	holdfast := func(args ...string) (string, error) {
		out, err := exec.Command(binary, args...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	var said admin.Cluster
	var out string
	if !await(limit, func() (is bool) {
		var err error
		out, err = holdfast("cluster", "status", "--admin", at(3), "--json")
		return err == nil && json.Unmarshal([]byte(out), &said) == nil && said.Spare == 1 && len(said.Nodes) == 3
	}) {
		t.Fatalf("no cell of three: %s", out)
	}
	if out, err := holdfast("push", "jobs", "hello", "--redis", at(6)+","+at(2)); err != nil {
		t.Errorf("push: %v, %s", err, out)
	}
	if out, err := holdfast("pop", "jobs", "--redis", at(10)); err != nil || out != "hello" {
		t.Errorf("pop: %v, %s", err, out)
	}
	must(t, syscall.Kill(-makes.Process.Pid, syscall.SIGINT))
	select {
	case <-ended: // make calls it an error
	case <-time.After(limit):
		t.Fatal("it does not end")
	}
	for _, offset := range []int{2, 6, 10} {
		if conn, err := net.Dial("tcp", at(offset)); err == nil {
			_ = conn.Close()
			t.Errorf("a node still listens at %s", at(offset))
		}
	}
}
