package planted

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// Bug is one change of the source. What it replaces stands there exactly once.
type Bug struct {
	Name     string
	File     string // from storage on; an absolute name is one of the Go system
	Old, New string
	Tests    string // which tests of its package are run; "" is all; then those of storage
}

// storage is the folder that most bugs are in.
const storage = "../../storage"

// longest is how long tests run that a bug makes hang, and then it is found.
const longest = "600s"

func (b Bug) path() (string, error) {
	if filepath.IsAbs(b.File) {
		return b.File, nil
	}
	return filepath.Abs(filepath.Join(storage, b.File))
}

// Source returns the file of a bug with it.
func (b Bug) Source() ([]byte, error) {
	name, err := b.path()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(text), b.Old); n != 1 {
		return nil, fmt.Errorf("%s has %d times what is to be replaced: %q", b.File, n, b.Old)
	}
	if b.New == b.Old {
		return nil, errors.New("nothing changes")
	}
	return []byte(strings.Replace(string(text), b.Old, b.New, 1)), nil
}

// Overlay returns a file that has the go command build with some bugs, each in a file of its own.
func Overlay(t *testing.T, bugs ...Bug) string {
	t.Helper()
	dir, replace := t.TempDir(), make(map[string]string)
	for i, b := range bugs {
		text, err := b.Source()
		if err != nil {
			t.Fatal(err)
		}
		was, err := b.path()
		with := filepath.Join(dir, fmt.Sprintf("with%d.go", i))
		if err := errors.Join(err, os.WriteFile(with, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		replace[was] = with
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	name := filepath.Join(dir, "overlay")
	if err := errors.Join(err, os.WriteFile(name, list, 0o600)); err != nil {
		t.Fatal(err)
	}
	return name
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^panic: (.*)|^(fatal error: .*)`)

// FoundBy runs the tests that are to find a bug, and returns the first that fails; "" if none does.
func (b Bug) FoundBy(t *testing.T) string {
	t.Helper()
	overlay, folder := Overlay(t, b), path.Join(storage, path.Dir(b.File))
	by := finds(t, overlay, folder, b.Tests)
	if by == "" && path.Dir(folder) == storage {
		by = finds(t, overlay, storage, b.Tests)
	}
	return by
}

// finds runs the tests of a package with a bug, and returns the first that fails; "" if none does.
func finds(t *testing.T, overlay, folder, tests string) string {
	t.Helper()
	args := []string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-failfast", "-timeout", longest, "-run", tests, folder}
	if path.Dir(folder) == path.Dir(storage) { // what a bug fails on is not tried without it
		args = append(args, "-rapid.nofailfile")
	}
	cmd := exec.Command("go", args...)
	// What a panic leaves, files and mounts, goes with the process. Some tests run as another user.
	temp := t.TempDir()
	if err := errors.Join(os.Chmod(temp, 0o755), os.Chmod(filepath.Dir(temp), 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "TMPDIR="+temp)
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	m := failedTest.FindString(string(out))
	if m == "" {
		t.Fatalf("the bug cannot be built, or the tests fail by something else: %s", out)
	}
	return strings.TrimSpace(m)
}
