package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestABackupLeavesTheProcessorsToTheServer(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, _ := tool(t, "backup", "--files", "--to", pipe, "--admin", s.addrs["admin"])
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waiting(t, cmd.Process.Pid) // for a reader
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", cmd.Process.Pid))
	if err != nil || len(stats) == 0 {
		t.Fatal(stats, err)
	}
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, fields, _ := strings.Cut(string(b), ") ")
		if nice := strings.Fields(fields)[16]; nice != "10" && nice != "19" {
			t.Errorf("a thread has niceness %s, want 10 or more: %s", nice, b)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	endsByItself(t, cmd)
}
