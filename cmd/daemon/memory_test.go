package daemon

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestTheHeapIsLimitedUntilACommandEnds(t *testing.T) {
	for name, row := range map[string]struct{ before, want int64 }{
		"no limit":      {math.MaxInt64, offlineHeap},
		"a higher one":  {offlineHeap + 1, offlineHeap},
		"a lower stays": {offlineHeap - 1, offlineHeap - 1},
	} {
		t.Run(name, func(t *testing.T) {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(row.before))
			undo := LimitHeap()
			if got := debug.SetMemoryLimit(-1); got != row.want {
				t.Errorf("the limit is %d, want %d", got, row.want)
			}
			undo()
			if got := debug.SetMemoryLimit(-1); got != row.before {
				t.Errorf("the limit is %d after the command, want %d", got, row.before)
			}
		})
	}
}

func TestTheLimitIsThatOfTheProcessesOwnControlGroups(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		groups string
		files  string // path and text of each
		want   int64
		found  string // of it
	}{
		"version 2":                        {"0::/system.slice/holdfast.service\n", "system.slice/holdfast.service/memory.max 268435456", 256 * mib, "system.slice/holdfast.service/memory.max"},
		"version 2, that of a group above": {"0::/a/b\n", "a/memory.max 134217728 a/b/memory.max max", 128 * mib, "a/memory.max"},
		"version 2, the least":             {"0::/a/b\n", "a/memory.max 268435456 a/b/memory.max 134217728", 128 * mib, "a/b/memory.max"},
		"version 2, a container's":         {"0::/\n", "memory.max 268435456", 256 * mib, "memory.max"},
		"version 2, of outside":            {"0::/../other\n", "memory.max 268435456", 256 * mib, "memory.max"},
		"version 2, none":                  {"0::/a\n", "a/memory.max max", 0, ""},
		"version 1":                        {"5:cpu,cpuacct:/x\n4:memory:/jobs/one\n", "memory/jobs/one/memory.limit_in_bytes 134217728 memory/x/memory.limit_in_bytes 7", 128 * mib, "memory/jobs/one/memory.limit_in_bytes"},
		"version 1, a container's":         {"4:memory:/docker/0123\n", "memory/memory.limit_in_bytes 134217728", 128 * mib, "memory/memory.limit_in_bytes"},
		"both":                             {"4:blkio,memory:/x\n0::/x\n", "memory/x/memory.limit_in_bytes 268435456 x/memory.max 134217728", 128 * mib, "x/memory.max"},
		"another group's":                  {"0::/a\n", "b/memory.max 7", 0, ""},
		"no such file":                     {"", "", 0, ""},
		"nonsense":                         {"memory\n0::/a\n", "a/memory.max -5", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			groups := filepath.Join(root, "cgroup")
			write := func(path, text string) {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(groups, c.groups)
			for f := strings.Fields(c.files); len(f) > 0; f = f[2:] {
				write(filepath.Join(root, f[0]), f[1])
			}
			want := c.found
			if want != "" {
				want = filepath.Join(root, want)
			}
			if limit, found := cgroupLimit(groups, root); limit != c.want || found != want {
				t.Errorf("%d of %q, want %d of %q", limit, found, c.want, want)
			}
		})
	}
}

func TestASmallServerKeepsLittleInMemory(t *testing.T) {
	const mib = 1 << 20
	for _, row := range []struct{ memory, payload, buffers, window, cache int64 }{
		{256 * mib, 0, 64 * mib, 8 * mib, 16 * mib},
		{32 * mib, 0, leastBuffers, mib, 16 * mib},
		{256 * mib, 64 * mib, 256 * mib, 8 * mib, 16 * mib},
	} {
		c := Config{MaxMemory: row.memory, MaxPayload: row.payload}
		if c.setDefaults(); c.MaxBuffers != row.buffers || c.maxWindow() != row.window || c.Cache != row.cache {
			t.Errorf("%+v: buffers of %d, a window of %d, a cache of %d", row, c.MaxBuffers, c.maxWindow(), c.Cache)
		}
	}
	for memory, want := range map[int64]int64{0: 16 * mib, 2048 * mib: 32 * mib, 64 * 1024 * mib: 256 * mib} {
		if got := defaultCache(memory); got != want {
			t.Errorf("with %d bytes of memory a cache of %d, want %d", memory, got, want)
		}
	}
}
