package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestTLSRenewKeepsNamesAndCA(t *testing.T) {
	dir := tlsFolder(t, "--client", "anna", "--host", "192.0.2.7", "--host", "queue.example", "--days", "9")
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("server.pem.new"), []byte("of a renewal that was cut short"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"server": nil, "anna": {"--client", "anna"}} {
		old, ca, key := readCert(t, dir, name), readFile(t, file("ca.pem")), readFile(t, file(name+"-key.pem"))
		want := file(name+".pem") + "\n" + file(name+"-key.pem") + "\n"
		if got := done(t, append([]string{"tls", "renew", dir, "--days", "30"}, args...)...); got != want {
			t.Errorf("%s: printed %q, want %q", name, got, want)
		}
		renewed := readCert(t, dir, name)
		if days := renewed.NotAfter.Sub(old.NotAfter).Hours() / 24; days < 20 || days > 22 {
			t.Errorf("%s holds %.1f days longer, want 21", name, days)
		}
		if got, want := fmt.Sprint(renewed.Subject, renewed.DNSNames, renewed.IPAddresses), fmt.Sprint(old.Subject, old.DNSNames, old.IPAddresses); got != want {
			t.Errorf("%s is of %s, was of %s", name, got, want)
		}
		if !slices.Equal(renewed.ExtKeyUsage, old.ExtKeyUsage) {
			t.Errorf("%s is for %v, was for %v", name, renewed.ExtKeyUsage, old.ExtKeyUsage)
		}
		if err := renewed.CheckSignatureFrom(readCert(t, dir, "ca")); err != nil || !bytes.Equal(ca, readFile(t, file("ca.pem"))) {
			t.Errorf("%s: %v; the CA must be the same", name, err)
		}
		if _, err := tls.LoadX509KeyPair(file(name+".pem"), file(name+"-key.pem")); err != nil || bytes.Equal(key, readFile(t, file(name+"-key.pem"))) {
			t.Errorf("%s: %v; the key must be a new one, and fit", name, err)
		}
		if info, err := os.Stat(file(name + "-key.pem")); err != nil || info.Mode() != 0o600 {
			t.Errorf("the key of %s: %v, %v", name, info, err)
		}
	}
	if left, _ := filepath.Glob(file("*.new")); len(left) > 0 {
		t.Errorf("files %q are left", left)
	}
}

// The server may be another user, whom an operator has let read the key.
func TestTLSRenewKeepsWhoMayReadTheFiles(t *testing.T) {
	dir := tlsFolder(t)
	key := filepath.Join(dir, "server-key.pem")
	if err := os.Chmod(key, 0o640); err != nil {
		t.Fatal(err)
	}
	want := syscall.Stat_t{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
	if want.Uid == 0 {
		want.Uid, want.Gid = 65532, 65533
	}
	if err := os.Chown(key, int(want.Uid), int(want.Gid)); err != nil {
		t.Fatal(err)
	}
	done(t, "tls", "renew", dir)
	info, err := os.Stat(key)
	if err != nil {
		t.Fatal(err)
	}
	if is := info.Sys().(*syscall.Stat_t); info.Mode() != 0o640 || is.Uid != want.Uid || is.Gid != want.Gid {
		t.Errorf("the key has mode %v and is of %d:%d, want 0640 and %d:%d", info.Mode(), is.Uid, is.Gid, want.Uid, want.Gid)
	}
}

func TestTLSRenewRefusesWhatIsNotItsOwn(t *testing.T) {
	dir, other := tlsFolder(t), tlsFolder(t)
	if err := os.Rename(filepath.Join(other, "server.pem"), filepath.Join(dir, "server.pem")); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"":              "is not of the CA",
		"--client none": "no such file",
	} {
		oneErrorLine(t, cli(t, append([]string{"tls", "renew", dir}, strings.Fields(line)...)...), exitFailed, want)
	}
	oneErrorLine(t, cli(t, "tls", "renew", dir, "--client", "ca"), exitUsage, "expected a name")
	oneErrorLine(t, cli(t, "tls", "renew", t.TempDir()), exitFailed, "ca.pem")
}
