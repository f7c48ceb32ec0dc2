package inject

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Mapped returns how many bytes of files whose paths contain a text the process has in memory.
func Mapped(t testing.TB, path string) (bytes int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	of := false
	for line := range strings.Lines(string(b)) {
		field, rest, _ := strings.Cut(line, " ")
		if kib := 0; of && field == "Rss:" {
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				t.Fatal(err)
			}
			bytes += kib << 10
		} else if !strings.HasSuffix(field, ":") {
			of = strings.Contains(line, path)
		}
	}
	return bytes
}
