package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// contextsFile writes contexts that only their owner can read.
func contextsFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "contexts.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAContextSaysWhereTheServerIsAndHowToGetIn(t *testing.T) {
	s := command{env: map[string]string{"HOLDFAST_REDIS_PASSWORD": "secret"}}.serve(t, t.TempDir(), "--admin", "127.0.0.1:0")
	file := contextsFile(t, `[prod]
redis = "`+s.addrs["redis"]+`"
admin = "`+s.addrs["admin"]+`"
db = 3
password-file = "prod.password"
[away]
redis = "127.0.0.1:1"
[bare]
`)
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "prod.password"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(more ...string) map[string]string {
		all := map[string]string{"HOLDFAST_CONTEXTS": file}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	said := command{env: env("HOLDFAST_CONTEXT", "prod")}
	if r := said.run(t.Context(), "push", "jobs", "x"); r.code != exitOK {
		t.Fatalf("push: %+v", r)
	}
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"the flag before the command":   {env(), []string{"--context", "prod", "queues"}, "jobs"},
		"the flag behind it":            {env(), []string{"queues", "--context=prod"}, "jobs"},
		"its variable":                  {env("HOLDFAST_CONTEXT", "prod"), []string{"queues"}, "jobs"},
		"the flag before the variable":  {env("HOLDFAST_CONTEXT", "none"), []string{"queues", "--context", "prod"}, "jobs"},
		"a flag before the context":     {env(), []string{"queues", "--context", "away", "--redis", s.addrs["redis"]}, "Authentication required"},
		"a variable before the context": {env("HOLDFAST_REDIS", s.addrs["redis"]), []string{"queues", "--context", "away"}, "Authentication required"},
		"a password in a variable":      {env("HOLDFAST_PASSWORD", "wrong"), []string{"queues", "--context", "prod"}, "invalid username-password pair"},
		"an empty context":              {env("HOLDFAST_PASSWORD", "secret", "HOLDFAST_REDIS", s.addrs["redis"]), []string{"stats", "jobs", "--context", "bare"}, "jobs"},
		"the operator's address":        {env(), []string{"backup", "--to", "-", "--format", "jsonl", "--context", "prod"}, `"jobs"`},
		"no server is asked":            {env("HOLDFAST_CONTEXT", "none"), []string{"version"}, "holdfast"},
		"the list":                      {env(), []string{"context", "list"}, "\nprod     " + s.addrs["redis"] + "  -\n"},
		"one of them":                   {env(), []string{"context", "show", "prod"}, "\npassword-file  prod.password\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := (command{env: c.env}).run(t.Context(), c.args...); !strings.Contains(r.stdout+r.stderr, c.want) {
				t.Errorf("%+v, want %q", r, c.want)
			}
		})
	}
	if r := said.run(t.Context(), "close", "jobs", "--yes"); r.code != exitOK {
		t.Fatalf("close: %+v", r)
	}
	r := said.run(t.Context(), "work", "jobs", "--", "sh", "-c", "echo $HOLDFAST_CONTEXT $HOLDFAST_REDIS $HOLDFAST_DB $HOLDFAST_PASSWORD_FILE")
	if want := "prod " + s.addrs["redis"] + " 3 " + filepath.Join(filepath.Dir(file), "prod.password") + "\n"; r.stdout != want {
		t.Errorf("a command of work finds %+v, want %q", r, want)
	}
}

func TestContextsThatCannotBeUsedAreRefusedWithThePlace(t *testing.T) {
	const good = "[prod]\nredis = \"127.0.0.1:1\"\n"
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		args []string
		want string
	}{
		"others may read it":      {good, 0o640, []string{"queues", "--context", "prod"}, "its mode is 0640, expected 0600"},
		"no such context":         {good + "[test]\n", 0o600, []string{"queues", "--context", "dev"}, `has no context "dev": expected prod, test`},
		"none to show":            {good, 0o600, []string{"context", "show", "dev"}, `has no context "dev": expected prod`},
		"a command of the server": {good, 0o600, []string{"--context", "prod", "serve"}, "expected a command that talks to a running server"},
		"no TOML":                 {good + "[test\n", 0o600, []string{"context", "list"}, "contexts.toml, line 3: expected"},
		"no context":              {"redis = 1\n", 0o600, []string{"context", "list"}, "line 1: redis: expected a table with the name of a context"},
		"an unknown key":          {good + "\nport = 1\n", 0o600, []string{"context", "list"}, "line 4: prod.port: unknown: expected admin, barbershop, db,"},
		"a key twice":             {good + good, 0o600, []string{"context", "list"}, "line 3: "},
		"a value of another type": {good + "db = \"1\"\n", 0o600, []string{"context", "list"}, "line 3: prod.db: a value of another type is expected"},
		"no address":              {"[prod]\nredis = \"here\"\n", 0o600, []string{"queues", "--context", "prod"}, "line 2: prod.redis: expected HOST:PORT, such as 127.0.0.1:6379, got \"here\""},
		"no database":             {"prod.redis = \"a:1\"\nprod.db = 16\n", 0o600, []string{"queues", "--context", "prod"}, "line 2: prod.db: expected a whole number from 0 to 15"},
		"all on one line":         {"\nprod = {db = 16}\n", 0o600, []string{"queues", "--context", "prod"}, "line 2: prod.db: "},
	} {
		t.Run(name, func(t *testing.T) {
			file := contextsFile(t, c.text)
			if err := os.Chmod(file, c.mode); err != nil {
				t.Fatal(err)
			}
			r := command{env: map[string]string{"HOLDFAST_CONTEXTS": file}}.run(t.Context(), c.args...)
			oneErrorLine(t, r, max(r.code, exitFailed), c.want)
		})
	}
	home := t.TempDir()
	r := command{env: map[string]string{"HOME": home}}.run(t.Context(), "queues", "--context", "prod")
	oneErrorLine(t, r, exitUsage, home+"/.config/holdfast/contexts.toml does not exist")
	r = command{env: map[string]string{"HOME": home, "XDG_CONFIG_HOME": "/etc/x"}}.run(t.Context(), "queues", "--context", "prod")
	oneErrorLine(t, r, exitUsage, "/etc/x/holdfast/contexts.toml does not exist")
}
