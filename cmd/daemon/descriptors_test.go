package daemon

import (
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/admin"
)

func TestConnectionsLeaveDescriptorsForTheStore(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if was.Max < 4000 {
		t.Skipf("skipped: it needs 4000 files, and %d is the hard limit", was.Max)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) })
	for name, row := range map[string]struct {
		files        uint64
		protocols    []string
		wished, want int
		passed       int
		refused      bool
		warned       bool
	}{
		"plenty":               {files: minStoreDescriptors + 200, protocols: []string{"pinpriq"}, wished: 100, want: 100, passed: 100},
		"not enough":           {files: minStoreDescriptors + 50, protocols: []string{"pinpriq"}, wished: 100, want: 50, passed: 25, warned: true},
		"not enough for two":   {files: minStoreDescriptors + 150, protocols: []string{"pinpriq", "redis"}, wished: 100, want: 75, passed: 37, warned: true},
		"some for the backups": {files: minStoreDescriptors + 150, protocols: []string{"pinpriq", admin.Name}, wished: 100, want: 150 - admin.DefaultMaxConns, passed: 43, warned: true},
		"half for the store":   {files: 4000, protocols: []string{"pinpriq"}, wished: 3000, want: 2000, passed: 1000},
		"just enough":          {files: 2000, protocols: []string{"pinpriq"}, wished: 3000, want: 1000, passed: 500},
		"too few":              {files: 1998, protocols: []string{"pinpriq"}, wished: 3000, want: 999, passed: 499, warned: true},
		"none for anyone":      {files: minStoreDescriptors, protocols: []string{"pinpriq"}, wished: 100, refused: true},
		"one for one of two":   {files: minStoreDescriptors + 1, protocols: []string{"pinpriq", "redis"}, wished: 100, refused: true},
	} {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: row.files, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		var all listeners
		for _, protocol := range row.protocols {
			all = append(all, &listener{protocol: protocol})
		}
		var log strings.Builder
		c := Config{MaxConns: row.wished, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		if err := c.limitConns(all); (err != nil) != row.refused {
			t.Errorf("%s: error %v", name, err)
		} else if err == nil && c.MaxConns != row.want {
			t.Errorf("%s: %d connections, want %d", name, c.MaxConns, row.want)
		} else if passed := (&Server{c: c, all: all}).MaxPassed(); err == nil && passed != row.passed {
			t.Errorf("%s: %d connections are passed on, want %d", name, passed, row.passed)
		}
		if strings.Contains(log.String(), "level=WARN") != row.warned {
			t.Errorf("%s: logged %q, want a warning: %v", name, &log, row.warned)
		}
	}
}

func TestAServerBeginsWithTheConnectionsThatDescriptorsAllow(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) })
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: minStoreDescriptors + 50, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	s, err := Begin(t.Context(), Config{Data: t.TempDir(), Redis: "127.0.0.1:0", MaxConns: 100})
	if err != nil {
		t.Fatal(err)
	}
	if s.c.MaxConns != 50 {
		t.Errorf("it takes %d, want 50", s.c.MaxConns)
	}
	if err := s.End(nil); err != nil {
		t.Error(err)
	}
}
