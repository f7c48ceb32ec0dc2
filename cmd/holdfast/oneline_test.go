package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFolderThatLacksTablesIsReportedOnOneLine(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	done(t, "compact", dir)
	for range 2 { // more tables than one
		s := serve(t, dir, "--redis", "127.0.0.1:0")
		redisReplies(t, s, "QPUSH jobs more")
		s.stop()
	}
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil || len(tables) < 2 {
		t.Fatalf("tables %v, %v; want some", tables, err)
	}
	for _, table := range tables {
		if err := os.Remove(table); err != nil {
			t.Fatal(err)
		}
	}
	const want = ".sst: no such file or directory; restore a copy"
	oneErrorLine(t, cli(t, "dump", dir), exitFailed, want)
	oneErrorLine(t, cli(t, "compact", dir), exitFailed, want)
}
