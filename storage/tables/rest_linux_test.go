package tables

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestRestGivesUpWhatAScanTook(t *testing.T) {
	s := open(t, t.TempDir())
	const size = 8 << 20
	entries := make([]Entry, size>>14)
	for n := range entries {
		entries[n] = Entry{Key: key(n), Version: 1, Value: make([]byte, 1<<14)}
	}
	built, err := s.Build(0, 2*size, sorted(entries))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Adopt(Adoption{Add: built, Window: 1}); err != nil {
		t.Fatal(err)
	}
	v := s.View()
	defer v.Close()
	if err := scan(v, func(Entry) {}); err != nil {
		t.Fatal(err)
	}
	took := mapped(t, v.List.Tables[0].Name())
	v.Rest()
	if left := mapped(t, v.List.Tables[0].Name()); took < size || left > size/8 {
		t.Errorf("of a table of %d bytes a scan took %d, and %d are left", size, took, left)
	}
}

// mapped returns how many bytes of a file the process has in memory.
func mapped(t *testing.T, name string) (bytes int) {
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
			of = strings.HasSuffix(line, "/"+name+"\n")
		}
	}
	return bytes
}
