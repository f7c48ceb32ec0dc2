package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tool starts the program as a process that is no server, with a folder for its temporary files.
func tool(t *testing.T, args ...string) (cmd *exec.Cmd, temp string) {
	t.Helper()
	temp = t.TempDir()
	cmd = itself(t, args...)
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	return cmd, temp
}

// nothingIn checks that a folder is empty.
func nothingIn(t *testing.T, dir string) {
	t.Helper()
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("the folder holds %v, %v; want nothing", names, err)
	}
}

// endsByItself waits for a process that was started.
func endsByItself(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
}

// plenty makes a folder whose dump is more than a pipe holds.
func plenty(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	s := serve(t, dir)
	s.must(t, "bench", "push", "--count", "200", "--size", "20000", "--keep")
	s.stop()
	return dir
}

func TestSystemReaderThatGoesAwayEndsADumpQuietly(t *testing.T) {
	cmd, temp := tool(t, "dump", plenty(t))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReaderSize(out, 16).ReadString('\n'); err != nil {
		t.Fatalf("read %q, %v", line, err)
	}
	_ = out.Close()
	endsByItself(t, cmd)
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || stderr.Len() > 0 {
		t.Errorf("exit code %d, %v, stderr %q; want 1 and silence", code, cmd.ProcessState, stderr.String())
	}
	nothingIn(t, temp)
}

func TestSystemSignalEndsACommandThatWaitsForAPipe(t *testing.T) {
	dir := plenty(t)
	for name, c := range map[string]struct {
		args func(pipe string) []string
		want string
	}{
		"dump into a full pipe":             {func(string) []string { return []string{"dump", dir} }, "dump: interrupted; what was written is not whole"},
		"dump into a pipe without a reader": {func(pipe string) []string { return []string{"dump", dir, "-o", pipe} }, "interrupted"},
		"load from an empty pipe":           {func(string) []string { return []string{"load", "-", filepath.Join(t.TempDir(), "new")} }, "interrupted"},
		"load from a pipe nobody writes to": {func(pipe string) []string { return []string{"load", pipe, filepath.Join(t.TempDir(), "new")} }, "interrupted"},
		"push of an empty pipe":             {func(string) []string { return []string{"push", "q", "--redis", nobody} }, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd, temp := tool(t, c.args(pipe)...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(name, "full") {
				if _, err := io.ReadFull(out, make([]byte, 1)); err != nil { // it writes, and nobody takes the rest
					t.Fatal(err)
				}
			}
			waiting(t, cmd.Process.Pid)
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			endsByItself(t, cmd)
			if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(stderr.String(), c.want) || strings.Count(stderr.String(), "\n") != 1 {
				t.Errorf("%v, stderr %q; want exit code 1 and an error with %q", cmd.ProcessState, stderr.String(), c.want)
			}
			nothingIn(t, temp)
		})
	}
}

// waiting waits until one of a process's threads is kept by a pipe. Where the system does not tell,
// it waits for longer than that takes.
func waiting(t *testing.T, pid int) {
	t.Helper()
	const enough = 3 * time.Second
	for limit := time.Now().Add(enough); time.Now().Before(limit); {
		names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/wchan", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err == nil && (strings.Contains(string(b), "pipe") || strings.Contains(string(b), "fifo") || strings.Contains(string(b), "partner")) {
				return
			}
		}
	}
}
