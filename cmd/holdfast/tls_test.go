package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// tlsFolder is a folder that "tls init" has made.
func tlsFolder(t *testing.T, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certs")
	if r := cli(t, append([]string{"tls", "init", dir}, args...)...); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	return dir
}

// readCert reads a certificate that "tls init" made.
func readCert(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(readFile(t, filepath.Join(dir, name+".pem")))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// serveTLS serves with the files of a folder.
func serveTLS(t *testing.T, dir string, args ...string) *testServer {
	t.Helper()
	return serve(t, t.TempDir(), append([]string{"--tls-cert", filepath.Join(dir, "server.pem"), "--tls-key", filepath.Join(dir, "server-key.pem"),
		"--tls-client-ca", filepath.Join(dir, "ca.pem")}, args...)...)
}

func TestWhatTLSInitMakesIsEnoughForServerAndClient(t *testing.T) {
	t.Parallel()
	dir := tlsFolder(t)
	s := serveTLS(t, dir)
	shown, err := tls.LoadX509KeyPair(filepath.Join(dir, "operator.pem"), filepath.Join(dir, "operator-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	s.must(t, "status", "--tls-ca", filepath.Join(dir, "ca.pem"), "--tls-cert", filepath.Join(dir, "operator.pem"), "--tls-key", filepath.Join(dir, "operator-key.pem"))
	trusted := x509.NewCertPool()
	trusted.AddCert(readCert(t, dir, "ca"))
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"127.0.0.1", "localhost", "::1", machine} {
		c, err := tls.Dial("tcp", s.addrs["redis"], &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{shown}, ServerName: name})
		if err != nil {
			t.Fatalf("as %s: %v", name, err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		got := make([]byte, len("+PONG\r\n"))
		_, _ = io.WriteString(c, "PING\r\n")
		if _, err := io.ReadFull(c, got); err != nil || string(got) != "+PONG\r\n" {
			t.Errorf("as %s: %q, %v", name, got, err)
		}
	}
}

func TestSystemRedisCliSpeaksTLSAsTLSInitShows(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("redis-cli is not installed: apt install redis-tools")
	}
	if help, _ := exec.CommandContext(t.Context(), "redis-cli", "--help").CombinedOutput(); !strings.Contains(string(help), "--tls") {
		t.Skip("redis-cli is built without TLS")
	}
	dir := filepath.Join(t.TempDir(), "it's")
	shows := cli(t, "tls", "init", dir).stdout
	port := strings.TrimPrefix(serveTLS(t, dir).addrs["redis"], "127.0.0.1:")
	_, line, _ := strings.Cut(shows, "    redis-cli ")
	line, _, _ = strings.Cut(line, " PING\n")
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "redis-cli -p "+port+" "+line+" LPUSH q hello").CombinedOutput()
	if err != nil || string(out) != "1\n" {
		t.Errorf("redis-cli says %q, %v", out, err)
	}
	out, _ = exec.CommandContext(t.Context(), "redis-cli", "-p", port, "PING").CombinedOutput()
	if !strings.Contains(string(out), "the first bytes are not TLS") {
		t.Errorf("redis-cli without TLS says %q, want what it should do", out)
	}
}

func TestWhatTLSInitShowsOfUsersIsAConfigThatKnowsTheClient(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "certs")
	shows := cli(t, "tls", "init", dir, "--client", "anna.b").stdout
	_, users, _ := strings.Cut(shows, "its config file says who that is:\n\n")
	s := serveTLS(t, dir, "--config", configFileOf(t, users+"operate = true\n"))
	s.must(t, "status", "--tls-ca", filepath.Join(dir, "ca.pem"), "--tls-cert", filepath.Join(dir, "anna.b.pem"), "--tls-key", filepath.Join(dir, "anna.b-key.pem"))
}

func TestTLSInitAddsWhatIsMissingAndOverwritesNothing(t *testing.T) {
	dir := tlsFolder(t, "--client", "anna", "--host", "queue.example", "--host", "192.0.2.7", "--days", "9")
	server := readCert(t, dir, "server")
	if !slices.Equal(server.DNSNames, []string{"queue.example", "localhost"}) || fmt.Sprint(server.IPAddresses) != "[192.0.2.7 127.0.0.1 ::1]" {
		t.Errorf("the server is known as %v and %v", server.DNSNames, server.IPAddresses)
	}
	for name, years := range map[string]int{"ca": 10, "server": 0, "anna": 0} {
		want := time.Now().AddDate(years, 0, 9*(1-years/10))
		if until := readCert(t, dir, name).NotAfter; until.Sub(want).Abs() > time.Hour {
			t.Errorf("%s holds until %v, want %v", name, until, want)
		}
	}
	files := func() (names []string) {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			info, err := f.Info()
			if err != nil {
				t.Fatal(err)
			}
			if secret := strings.HasSuffix(f.Name(), "-key.pem"); secret && info.Mode() != 0o600 {
				t.Errorf("%s has the mode %v", f.Name(), info.Mode())
			}
			names = append(names, f.Name()+" "+info.ModTime().String())
		}
		return names
	}
	before := files()
	for name, row := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nothing to add":           {nil, exitFailed, "add a client with --client NAME"},
		"a client that is there":   {[]string{"--client", "anna"}, exitFailed, "nothing is overwritten"},
		"another server":           {[]string{"--host", "other"}, exitFailed, "delete it and its key"},
		"a path for a name":        {[]string{"--client", "../anna"}, exitUsage, "expected a name"},
		"a client without a name":  {[]string{"--client", ""}, exitUsage, "expected a name"},
		"a host without a name":    {[]string{"--host", ""}, exitUsage, "expected the name of a machine"},
		"the name of the CA":       {[]string{"--client", "ca"}, exitUsage, "expected a name"},
		"the name of a key":        {[]string{"--client", "anna-key"}, exitUsage, "expected a name"},
		"a client twice":           {[]string{"--client", "x", "--client", "x"}, exitUsage, "given twice"},
		"an address with a port":   {[]string{"--host", "other:7070"}, exitUsage, "without a port"},
		"no day":                   {[]string{"--days", "0"}, exitUsage, "--days"},
		"a client behind one more": {[]string{"--client", "new", "--client", "anna"}, exitFailed, "nothing is overwritten"},
	} {
		t.Run(name, func(t *testing.T) {
			oneErrorLine(t, cli(t, append([]string{"tls", "init", dir}, row.args...)...), row.code, row.want)
		})
	}
	if after := files(); !slices.Equal(before, after) {
		t.Errorf("files %q, want %q", after, before)
	}

	if r := cli(t, "tls", "init", dir, "--client", "new"); r.code != exitOK || !strings.HasPrefix(r.stdout, filepath.Join(dir, "new.pem")+"\n"+filepath.Join(dir, "new-key.pem")+"\n") {
		t.Errorf("%+v, want a client more", r)
	}
	for _, name := range []string{"server.pem", "server-key.pem"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if r := cli(t, "tls", "init", dir); r.code != exitOK {
		t.Errorf("%+v, want a new certificate for the server", r)
	}
	for _, name := range []string{"server", "new", "anna"} {
		if err := readCert(t, dir, name).CheckSignatureFrom(readCert(t, dir, "ca")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := files(); len(now) != 8 {
		t.Errorf("files %q", now)
	}
	if err := os.Remove(filepath.Join(dir, "ca-key.pem")); err != nil {
		t.Fatal(err)
	}
	oneErrorLine(t, cli(t, "tls", "init", dir, "--client", "last"), exitFailed, "bring the key back")
}
