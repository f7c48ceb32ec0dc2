package main

import (
	"errors"
	"os"
	"testing"
)

func TestExitCodeOfVerifyTellsWhatWasNotRead(t *testing.T) {
	t.Parallel()
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
			if r := (command{stdout: c.stdout}).run(t.Context(), "verify", c.dir); r != (result{code: c.code, stderr: c.stderr}) {
				t.Errorf("%+v; want %d, %q", r, c.code, c.stderr)
			}
		})
	}
}

func TestCommandsSayWhatTheyCouldNotPrint(t *testing.T) {
	t.Parallel()
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
			into := s.command()
			into.stdout = gone
			if r := into.run(t.Context(), c.args...); r != (result{code: exitFailed, stderr: c.want}) {
				t.Errorf("%+v; want 1, %q", r, c.want)
			}
		})
	}
}
