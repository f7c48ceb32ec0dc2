package daemon

import (
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/storage/content"
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

func TestADigestIsThatOfUsersAndDefaultsAlone(t *testing.T) {
	config := func(change func(c *Config)) *Config {
		c := &Config{
			Data: "here", Users: []access.User{{Name: "ann", Password: "a"}, {Name: "bob", Grants: []access.Grant{{Glob: "*", Rights: access.Look}}}},
			Queues: map[string]broker.Settings{"q": {Bound: 7}, "r": {Orders: content.Orders{{Tag: "t", Values: []string{"v"}}}}},
		}
		change(c)
		return c
	}
	want := config(func(*Config) {}).digest()
	for name, change := range map[string]func(c *Config){
		"another folder": func(c *Config) { c.Data = "there" },
		"another order":  func(c *Config) { c.Users[0], c.Users[1] = c.Users[1], c.Users[0] },
	} {
		if got := config(change).digest(); got != want {
			t.Errorf("%s: another digest", name)
		}
	}
	for name, change := range map[string]func(c *Config){
		"a password":           func(c *Config) { c.Users[0].Password = "b" },
		"a right":              func(c *Config) { c.Users[1].Grants[0].Rights = access.Take },
		"the password of all":  func(c *Config) { c.RedisPassword = "x" },
		"the user of no login": func(c *Config) { c.PlainUser = "bob" },
		"a setting":            func(c *Config) { c.Queues["q"] = broker.Settings{Bound: 8} },
		"an order":             func(c *Config) { c.Queues["r"].Orders[0].Values[0] = "w" },
	} {
		if config(change).digest() == want {
			t.Errorf("%s: the same digest", name)
		}
	}
}
