package terminal

import (
	"context"
	"errors"
	"io"
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
	p := Process{long: io.Discard}
	for _, keep := range []bool{false, true} {
		o, err := p.Create(name)
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
			if err := o.Keep(); err != nil {
				t.Fatal(err)
			}
		}
		o.Discard()
		if b, err := os.ReadFile(name); err != nil || string(b) != want {
			t.Errorf("kept %t: the file holds %d bytes %.10q, %v", keep, len(b), b, err)
		}
		if names, err := os.ReadDir(filepath.Dir(name)); err != nil || len(names) != 1 {
			t.Errorf("kept %t: the folder holds %v, %v; want the file only", keep, names, err)
		}
	}
}

func TestOutputsThatCannotBeWrittenAreRefused(t *testing.T) {
	dir := t.TempDir()
	p := Process{long: io.Discard}
	for name, want := range map[string]string{
		dir:                               "is a folder",
		filepath.Join(dir, "none", "out"): "no such file",
	} {
		if _, err := p.Create(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", name, err, want)
		}
	}
	full, err := p.Create("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = full.WriteString("x")
	if err := full.Keep(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a full device: %v, want its error", err)
	}
}

func TestTwoOutputsOfOneNameDoNotMix(t *testing.T) {
	dir := t.TempDir()
	name, precious := filepath.Join(dir, "out"), filepath.Join(dir, "precious")
	if err := errors.Join(
		os.WriteFile(precious, []byte("precious"), 0o644),
		os.WriteFile(name+".tmp", []byte("somebody's"), 0o644),
		os.Symlink(precious, filepath.Join(dir, ".out.tmp")),
	); err != nil {
		t.Fatal(err)
	}
	p := Process{long: io.Discard}
	first, err := p.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, _ = first.WriteString("first")
		_, _ = second.WriteString("second")
		_, _ = first.Flush(), second.Flush()
	}
	for o, want := range map[*Output]string{first: "firstfirstfirst", second: "secondsecondsecond"} {
		if err := o.Keep(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v; want the owner's only", info.Mode(), err)
		}
		if got := string(readFile(t, name)); got != want {
			t.Errorf("the file holds %q, want %q", got, want)
		}
	}
	if got := string(readFile(t, name+".tmp")) + string(readFile(t, precious)); got != "somebody'sprecious" {
		t.Errorf("the files of others hold %q", got)
	}
}

func TestOutputToALinkIsWrittenToWhereItLeads(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.WriteFile(target, []byte("older"), 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	o, err := (&Process{Stdout: io.Discard}).Create(link)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = o.WriteString("newer")
	if err := o.Keep(); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != target || string(readFile(t, target)) != "newer" {
		t.Errorf("the link leads to %q, %v, where %q is", to, err, readFile(t, target))
	}
}

func TestNothingIsWrittenOnceTheCommandIsToEnd(t *testing.T) {
	stop := make(chan struct{})
	var out strings.Builder
	o, err := (&Process{long: &out, stop: stop}).Create("-")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = o.WriteString("before")
	if err := o.Flush(); err != nil {
		t.Fatal(err)
	}
	close(stop)
	_, _ = o.WriteString("after")
	if err := o.Keep(); !errors.Is(err, context.Canceled) || out.String() != "before" {
		t.Errorf("%v, written %q; want to be stopped before the second", err, out.String())
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
