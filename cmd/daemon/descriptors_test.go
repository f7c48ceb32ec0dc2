package daemon

import (
	"log/slog"
	"syscall"
	"testing"
)

func TestConnectionsLeaveDescriptorsForTheStore(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) })
	for name, row := range map[string]struct {
		files        uint64
		wished, want int
		refused      bool
	}{
		"plenty":          {files: storeDescriptors + 200, wished: 100, want: 100},
		"not enough":      {files: storeDescriptors + 50, wished: 100, want: 50},
		"none for anyone": {files: storeDescriptors, wished: 100, refused: true},
	} {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: row.files, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		c := Config{MaxConns: row.wished, Logger: slog.New(slog.DiscardHandler)}
		if err := c.limitConns(); (err != nil) != row.refused {
			t.Errorf("%s: error %v", name, err)
		} else if err == nil && c.MaxConns != row.want {
			t.Errorf("%s: %d connections, want %d", name, c.MaxConns, row.want)
		}
	}
}
