package main

import "testing"

func TestDumpExpectsWhatItWillWrite(t *testing.T) {
	for name, c := range map[string]struct {
		dump  dumpCmd
		total int64
		want  int64
	}{
		"all":         {dumpCmd{}, 1000, 1000},
		"some queues": {dumpCmd{Queue: []string{"q"}}, 1000, 0},
		"a few":       {dumpCmd{Limit: 10}, 1000, 10},
		"fewer":       {dumpCmd{Limit: 10}, 5, 5},
	} {
		if got := c.dump.expected(c.total); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
