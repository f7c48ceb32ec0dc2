package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFileHasItsNameOnlyWhenItIsWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(name, []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := program{stdout: io.Discard}
	for _, keep := range []bool{false, true} {
		o, err := p.create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(o, strings.Repeat("newer", outputBuffer)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(name); err != nil || string(b) != "older" {
			t.Fatalf("while it is written the file holds %.10q, %v; want what it held", b, err)
		}
		want := "older"
		if keep {
			want = strings.Repeat("newer", outputBuffer)
			if err := o.keep(); err != nil {
				t.Fatal(err)
			}
		}
		o.discard()
		if b, err := os.ReadFile(name); err != nil || string(b) != want {
			t.Errorf("kept %t: the file holds %d bytes %.10q, %v", keep, len(b), b, err)
		}
		if _, err := os.Stat(name + ".tmp"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("kept %t: the file written beside it is still there: %v", keep, err)
		}
	}
}

func TestOutputsThatCannotBeWrittenAreRefused(t *testing.T) {
	dir := t.TempDir()
	p := program{stdout: io.Discard}
	for name, want := range map[string]string{
		dir:                               "is a folder",
		filepath.Join(dir, "none", "out"): "no such file",
	} {
		if _, err := p.create(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", name, err, want)
		}
	}
	full, err := p.create("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = full.WriteString("x")
	if err := full.keep(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a full device: %v, want its error", err)
	}
	if _, err := os.Stat("/dev/full.tmp"); err == nil {
		t.Error("a file was written beside a device")
	}
}
