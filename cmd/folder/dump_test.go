package folder

import "testing"

func TestDumpExpectsWhatItWillWrite(t *testing.T) {
	for name, c := range map[string]struct {
		dump  Dump
		total int64
		want  int64
	}{
		"all":         {Dump{}, 1000, 1000},
		"some queues": {Dump{Queue: []string{"q"}}, 1000, 0},
		"a few":       {Dump{Limit: 10}, 1000, 10},
		"fewer":       {Dump{Limit: 10}, 5, 5},
	} {
		if got := c.dump.expected(c.total); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
