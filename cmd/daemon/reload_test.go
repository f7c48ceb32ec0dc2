package daemon

import (
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

func TestAPlainNameCountsAndElseTheLongestGlob(t *testing.T) {
	for _, c := range []struct {
		name  string
		globs []string
		want  string
	}{
		{"a", []string{"*", "a"}, "a"},
		{"1", []string{"1", "?"}, "1"},
		{"[", []string{"*", "["}, "*"}, // a class without an end
		{"jobs.a", []string{"jobs.*", "jobs.a", "*"}, "jobs.a"},
		{"jobs.ab", []string{"jobs.*", "jobs.a", "*"}, "jobs.*"},
		{"jobs.a", []string{"jobs.*", "jobs.?"}, "jobs.*"}, // by their bytes
		{"jobs.a", []string{"jobs.[a]", "jobs.a"}, "jobs.a"},
		{"other", []string{"jobs.*"}, ""},
	} {
		config := Config{Queues: make(map[string]broker.Settings)}
		for _, glob := range c.globs {
			config.Queues[glob] = broker.Settings{DeadLetter: []byte(glob)}
		}
		find, err := config.queueDefaults()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if s := find(c.name); s != nil {
			got = string(s.DeadLetter)
		}
		if got != c.want {
			t.Errorf("of %q for the queue %s counts %q, want %q", c.globs, c.name, got, c.want)
		}
	}
}
