package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// oneErrorLine checks that a run failed with an exit code and one line that says why.
func oneErrorLine(t *testing.T, r result, code int, want string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
	last := lines[len(lines)-1] // after what a server may have logged
	if r.code != code || !strings.HasPrefix(last, "holdfast: ") || !strings.Contains(last, want) || r.stdout != "" {
		t.Errorf("exit code %d, stderr %q, stdout %q; want exit code %d and an error with %q", r.code, r.stderr, r.stdout, code, want)
	}
	if strings.Count(r.stderr, "holdfast: ") != 1 || strings.Contains(r.stderr, "goroutine") {
		t.Errorf("stderr %q, want one line", r.stderr)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	taken := serve(t, t.TempDir())
	inUse := t.TempDir()
	serve(t, inUse)
	for name, c := range map[string]struct {
		prepare func(dir string) error // makes the folder what it should not be
		args    []string               // behind --data DIR
		want    string
	}{
		"port taken":             {args: []string{"--pinpriq", taken.addr}, want: "choose another with --pinpriq"},
		"port of another taken":  {args: []string{"--admin", taken.addr}, want: "choose another with --admin"},
		"nothing to serve":       {args: []string{"--pinpriq", "off"}, want: "no protocol is served"},
		"admin open to others":   {args: []string{"--admin", "0.0.0.0:0"}, want: `--admin: "0.0.0.0:0" can be reached`},
		"address of another":     {args: []string{"--pinpriq", "192.0.2.1:0", "--insecure"}, want: "192.0.2.1"},
		"not an address":         {args: []string{"--pinpriq", "7070"}, want: "HOST:PORT"},
		"open to other machines": {args: []string{"--pinpriq", "0.0.0.0:0"}, want: "--insecure"},
		"open by an empty host":  {args: []string{"--pinpriq", ":0"}, want: "--insecure"},
		"folder in use":          {args: []string{"--data", inUse}, want: "in use"},
		"folder of a newer format": {prepare: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "format"), []byte("99\n"), 0o600)
		}, want: "newer"},
		"folder of something else": {prepare: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "letter.txt"), nil, 0o600)
		}, want: "letter.txt"},
		"a file instead of a folder": {prepare: func(dir string) error {
			return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600))
		}, want: "data folder"},
		"folder that cannot be written": {prepare: func(dir string) error { return os.Chmod(dir, 0o500) }, want: "permission denied"},
		"folder that cannot be made":    {args: []string{"--data", "/dev/null/data"}, want: "data folder"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if c.prepare != nil {
				if err := c.prepare(dir); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(c.want, "permission") && os.Geteuid() == 0 {
				t.Skip("the superuser may write everywhere")
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			args := append([]string{"serve", "--data", dir, "--pinpriq", "127.0.0.1:0", "--barbershop", "off", "--redis", "off", "--admin", "off"}, c.args...)
			oneErrorLine(t, command{}.run(ctx, args...), exitFailed, c.want)
		})
	}
}

func TestAClientThatCannotBeServedSaysWhy(t *testing.T) {
	s := serve(t, t.TempDir())
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	tooLong, beyond := strings.Repeat("x", 65536), strings.Repeat("x", 1<<20+1)
	for name, c := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"push to nobody":          {args: []string{"push", "q", "x", "--redis", nobody}, want: "no server answers at"},
		"pop from nobody":         {args: []string{"pop", "q", "--redis", nobody}, want: "no server answers at"},
		"subscribe to nobody":     {args: []string{"subscribe", "q", "--redis", nobody}, want: "no server answers at"},
		"bench of nobody":         {args: []string{"bench", "--pinpriq", nobody}, want: "no server answers at"},
		"bench of nobody's board": {args: []string{"bench", "--protocol", "barbershop", "--barbershop", nobody}, want: "no server answers at"},
		"board that is none":      {args: []string{"bench", "--protocol", "barbershop", "--timeout", "50ms", "--barbershop", silent.Addr().String()}, want: "check that it speaks barbershop"},
		"a server that is mute":   {args: []string{"push", "q", "x", "--timeout", "1s", "--redis", silent.Addr().String()}, want: "did not answer within 1s"},
		"pop of another protocol": {args: []string{"pop", "q", "--redis", s.addr}, want: "check that --redis " + s.addr + " is the server's address for Redis clients"},
		"argument too long":       {args: []string{"push", "q", beyond}, want: "the limit is 1048576"},
		"standard input too long": {stdin: beyond, args: []string{"push", "q"}, want: "the limit is 1048576"},
		"name too long":           {args: []string{"push", tooLong, "x"}, want: "too large"},
		"name to hear too long":   {args: []string{"subscribe", tooLong}, want: "the name has 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			oneErrorLine(t, s.runWith(t, c.stdin, c.args...), exitFailed, c.want)
		})
	}
}

func TestAnInterruptedClientSaysSo(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends with the listener
		conn, err := silent.Accept()
		if err == nil {
			_, _ = conn.Read(make([]byte, 1)) // the request is on its way
			cancel()
		}
	}()
	oneErrorLine(t, command{}.run(ctx, "pop", "q", "--redis", silent.Addr().String()), exitFailed, "interrupted")
}
