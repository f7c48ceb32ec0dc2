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
		refused      bool
		warned       bool
	}{
		"plenty":               {files: minStoreDescriptors + 200, protocols: []string{"pinpriq"}, wished: 100, want: 100},
		"not enough":           {files: minStoreDescriptors + 50, protocols: []string{"pinpriq"}, wished: 100, want: 50, warned: true},
		"not enough for two":   {files: minStoreDescriptors + 150, protocols: []string{"pinpriq", "other"}, wished: 100, want: 75, warned: true},
		"some for the backups": {files: minStoreDescriptors + 150, protocols: []string{"pinpriq", admin.Name}, wished: 100, want: 150 - admin.DefaultMaxConns, warned: true},
		"half for the store":   {files: 4000, protocols: []string{"pinpriq"}, wished: 3000, want: 2000},
		"just enough":          {files: 2000, protocols: []string{"pinpriq"}, wished: 3000, want: 1000},
		"too few":              {files: 1998, protocols: []string{"pinpriq"}, wished: 3000, want: 999, warned: true},
		"none for anyone":      {files: minStoreDescriptors, protocols: []string{"pinpriq"}, wished: 100, refused: true},
		"one for one of two":   {files: minStoreDescriptors + 1, protocols: []string{"pinpriq", "other"}, wished: 100, refused: true},
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
		}
		if strings.Contains(log.String(), "level=WARN") != row.warned {
			t.Errorf("%s: logged %q, want a warning: %v", name, &log, row.warned)
		}
	}
}
