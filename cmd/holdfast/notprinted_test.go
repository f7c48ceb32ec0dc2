package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

func TestExitCodeOfVerifyTellsWhatWasNotRead(t *testing.T) {
	sound, damaged := filled(t), filled(t)
	damage(t, damaged, 1)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	read, gone, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	_ = read.Close()
	for name, c := range map[string]struct {
		dir    string
		stdout *os.File
		code   int
		stderr string
	}{
		"sound, read no further":   {sound, gone, exitOK, ""},
		"damaged, read no further": {damaged, gone, exitUnsound, "holdfast: verify: the folder has 3 findings\n"},
		"sound, not written":       {sound, full, exitNotChecked, "holdfast: verify: no result: write to standard output: no space left on device\n"},
		"damaged, not written":     {damaged, full, exitNotChecked, "holdfast: verify: no result: write to standard output: no space left on device\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			p := program{Process: terminal.Process{Stdin: strings.NewReader(""), Stdout: c.stdout, Stderr: &stderr, Env: command{}.lookup}}
			if code := p.run(t.Context(), []string{"verify", c.dir}); code != c.code || stderr.String() != c.stderr {
				t.Errorf("exit code %d, stderr %q; want %d, %q", code, stderr.String(), c.code, c.stderr)
			}
		})
	}
}

func TestCommandsSayWhatTheyCouldNotPrint(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "x")
	read, gone, err := os.Pipe()
	if err := errors.Join(err, read.Close()); err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"pop":     {[]string{"pop", "q"}, "holdfast: print 1 packet, gone from the queue: nobody reads standard output any more\n"},
		"version": {[]string{"version"}, ""},
		"compact": {[]string{"compact", filled(t)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			env := command{env: map[string]string{"HOLDFAST_REDIS": s.addrs["redis"]}}
			p := program{Process: terminal.Process{Stdin: strings.NewReader(""), Stdout: gone, Stderr: &stderr, Env: env.lookup}}
			if code := p.run(t.Context(), c.args); code != exitFailed || stderr.String() != c.want {
				t.Errorf("exit code %d, stderr %q; want 1, %q", code, stderr.String(), c.want)
			}
		})
	}
}
