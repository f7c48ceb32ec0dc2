package planted

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

var plant = flag.Bool("planted", false, "build the tests with each bug, and run them")

// storage is the folder that most bugs are in.
const storage = "../../storage"

// longest is how long tests run that a bug makes hang, and then it is found.
const longest = "600s"

// source returns the file of a bug with it.
func (b bug) source() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(storage, b.file))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(text), b.old); n != 1 {
		return nil, fmt.Errorf("%s has %d times what is to be replaced: %q", b.file, n, b.old)
	}
	if b.new == b.old {
		return nil, errors.New("nothing changes")
	}
	return []byte(strings.Replace(string(text), b.old, b.new, 1)), nil
}

func TestPlantedBugsFitTheSource(t *testing.T) {
	for _, b := range bugs() {
		if _, err := b.source(); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
	}
}

// overlay returns a file that has the go command build with a bug.
func (b bug) overlay(t *testing.T) string {
	t.Helper()
	text, err := b.source()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	was, err := filepath.Abs(filepath.Join(storage, b.file))
	if err != nil {
		t.Fatal(err)
	}
	with := filepath.Join(dir, "with.go")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{was: with}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay")
	if err := errors.Join(os.WriteFile(with, text, 0o600), os.WriteFile(name, list, 0o600)); err != nil {
		t.Fatal(err)
	}
	return name
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^panic: (.*)|^(fatal error: .*)`)

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

func TestPlantedBugsAreFound(t *testing.T) {
	if !*plant {
		t.Skip("skipped: make planted builds the tests with each bug")
	}
	for _, b := range bugs() {
		t.Run(b.name, func(t *testing.T) {
			begun := time.Now()
			overlay, folder := b.overlay(t), path.Join(storage, path.Dir(b.file))
			by := finds(t, overlay, folder, b.tests)
			if by == "" && path.Dir(folder) == storage {
				by = finds(t, overlay, storage, b.tests)
			}
			if by == "" {
				t.Fatalf("the bug is not found in %v", time.Since(begun).Round(time.Second))
			}
			t.Logf("found after %v: %s", time.Since(begun).Round(time.Second), by)
		})
	}
}
