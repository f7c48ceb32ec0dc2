package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/holdfast-queue/holdfast/cmd/config"
)

// configFileOf writes a config file and returns its name.
func configFileOf(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "holdfast.toml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const someHash = "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"

func TestBrokenConfigsAreNamedByLineAndKey(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for name, c := range map[string]struct {
		text string
		want string // behind the name of the file
	}{
		"not TOML":                         {"\n\nredis 127.0.0.1:1", ":3: "},
		"a key twice":                      {"log = 'text'\nlog = 'json'", ":2: "},
		"a user twice":                     {"[users.a]\n[users.a]", ":2: "},
		"an unknown flag":                  {"\nredsi = 'off'", ":2: redsi: unknown key: expected users, queues or a flag"},
		"the file itself":                  {"config = 'x'", ":1: config: unknown key"},
		"the help":                         {"help = true", ":1: help: unknown key"},
		"a flag with dashes":               {"\n'--log' = 'text'", ":2: --log: unknown key"},
		"a text for a number":              {"max-conns = '5'", ":1: max-conns: expected a whole number, got a string"},
		"a number out of its range":        {"\nmax-conns = 0", ":2: max-conns: expected a whole number from 1 to 1048576"},
		"a number for a text":              {"redis = 5", ":1: redis: expected a string, got a whole number"},
		"a text for a flag":                {"debug = 'yes'", ":1: debug: expected true or false, got a string"},
		"a text for an array":              {"redis-disable = 'KEYS'", ":1: redis-disable: expected an array of strings, got a string"},
		"a number in an array":             {"redis-disable = ['KEYS', 1]", ":1: redis-disable: expected an array of strings, got an array"},
		"a time without a unit":            {"drain = 8", `:1: drain: "8" has no unit`},
		"a time that is a date":            {"drain = 2026-01-01", ":1: drain: expected a string, got a date or time"},
		"a size without a unit":            {"cache = 65536", `:1: cache: `},
		"a size out of its range":          {"\ncache = '1KiB'", ":2: cache: 1KiB: expected 64KiB to 32GiB"},
		"none of the words":                {"log = 'xml'", `:1: log: must be one of "text","json"`},
		"an unknown sync mode":             {"sync = 'often'", ":1: sync: "},
		"an unknown command":               {"redis-disable = ['NOPE']", ":1: redis-disable: "},
		"a folder without a name":          {"data = ''", ":1: data: "},
		"users that are no table":          {"users = 5", ":1: users: expected a table, got a whole number"},
		"a list of users":                  {"[[users]]\nname = 'a'", ":1: users: expected a table, got an array"},
		"a user that is no table":          {"[users]\na = 1", ":2: users.a: expected a table, got a whole number"},
		"a user's name with a space":       {"[users.'a b']", `:1: users."a b": not a name`},
		"an unknown key of a user":         {"[users.a]\noff = true\npassword = 'x'", ":3: users.a.password: unknown key: expected hashes"},
		"a hash that is none":              {"[users.a]\noff = true\nhashes = ['secret']", ":3: users.a.hashes: a hash is none of bcrypt"},
		"a hash in a table in a line":      {"\nusers.a = { off = true, hashes = ['" + someHash + "', 'secret'] }", ":2: users.a.hashes: a hash is none of bcrypt"},
		"a hash that is too costly":        {"[users.a]\n\nhashes = ['" + strings.Replace(someHash, "$10$", "$15$", 1) + "']", ":3: users.a.hashes: a hash has the cost 15"},
		"a password that is too long":      {"[users.a]\n\npassword-file = '" + configFileOf(t, long) + "'", ":3: users.a.password-file: the password is too long"},
		"a hash that is a text":            {"[users.a]\nhashes = 'secret'", ":2: users.a.hashes: expected an array of strings, got a string"},
		"an unknown right":                 {"[users.a]\ngrants = { 'jobs.*' = ['push', 'steal'] }", `:2: users.a.grants."jobs.*": unknown right "steal"`},
		"the operate right for queues":     {"[users.a.grants]\n'*' = ['operate']", `:2: users.a.grants."*": operate is no right for queues`},
		"no right at all":                  {"[users.a.grants]\n'*' = []", `:2: users.a.grants."*": expected some rights of push+take`},
		"a glob of a grant too long":       {"[users.a.grants]\n" + long + " = ['push']", ":2: users.a.grants." + long},
		"a switch of a user":               {"[users.a]\noperate = 1", ":2: users.a.operate: expected true or false"},
		"a password file that is gone":     {"[users.a]\n\npassword-file = '/nope/x'", ":3: users.a.password-file: the password: read /nope/x: no such file"},
		"a certificate of two users":       {"[users.b]\ncertificates = ['x']\n[users.a]\noff = true\ncertificates = ['x']", ":5: users.a.certificates: \"x\" is of user \"b\", too"},
		"a certificate twice":              {"[users.a]\ncertificates = ['x', 'x']", ":2: users.a.certificates: \"x\" is there twice"},
		"a certificate without a name":     {"[users.a]\ncertificates = ['']", ":2: users.a.certificates: one has no name"},
		"an unknown setting":               {"[queues.'jobs.*']\nlaese = '5m'", `:2: queues."jobs.*".laese: unknown setting: expected one of max-attempts`},
		"a setting with a letter off":      {"[queues.q]\nmax_attempts = 1", `:2: queues.q.max_attempts: unknown setting: expected one of ` + strings.Join(config.SettingNames(), ", ") + `: did you mean "max-attempts"?`},
		"a key with a letter off":          {"\nreddis = 'x'", `:2: reddis: unknown key: expected users, queues or a flag of "holdfast serve" without its dashes: did you mean "redis"?`},
		"an address without quotes":        {"\nredis = 127.0.0.1:6379", `:2: expected newline but got U+002E '.': a text stands in quotes, such as redis = "127.0.0.1:6379"`},
		"a setting without a unit":         {"[queues.q]\nlease = 5", `:2: queues.q.lease: "5" has no unit`},
		"a setting out of its range":       {"[queues.q]\nretain = '1m'\nmax-attempts = 65536", ":3: queues.q.max-attempts: expected a number from 0 to 65535"},
		"a setting of the wrong type":      {"[queues.q]\nbound = 1.5", ":2: queues.q.bound: expected a string, a whole number, true or false, got a number with a point"},
		"no word of a setting":             {"[queues.q]\nfull = 'burst'", ":2: queues.q.full: expected one of reject, block, drop"},
		"backoffs against each other":      {"[queues.q]\nbackoff-max = '1s'\nbackoff-min = '1h'", ":3: queues.q.backoff-min: expected at most backoff-max"},
		"closed queues":                    {"[queues.q]\nclosed = true", ":2: queues.q.closed: "},
		"an order that is no table":        {"[queues.q]\nenum = ['a']", ":2: queues.q.enum: expected a table, got an array"},
		"an order with a value twice":      {"[queues.q]\nenum.class = ['a', 'a']", ":2: queues.q.enum: "},
		"a password file that is none":     {"[users.a]\n\npassword-file = '/dev/zero'", ":3: users.a.password-file: the password: /dev/zero is no regular file"},
		"a password of Redis that is none": {"\nredis-password-file = '/dev/zero'", ":2: redis-password-file: the password: /dev/zero is no regular file"},
		"a password of Redis that is gone": {"\nredis-password-file = '/nope/x'", ":2: redis-password-file: the password: read /nope/x: no such file"},
		"a glob of queues too long":        {"[queues." + long + "]", ":1: queues." + long + ": the pattern is too long"},
		"a dead-letter queue without end":  {"[queues.q]\ndead-letter = '" + strings.Repeat("x", 70_000) + "'", ":2: queues.q.dead-letter: expected 0 to 65535 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			file := configFileOf(t, c.text)
			for _, args := range [][]string{{"config", "check", file}, {"serve", "--config", file}} {
				r := command{}.run(t.Context(), args...)
				oneErrorLine(t, r, exitFailed, file+c.want)
				if strings.Contains(r.stderr, "secret") {
					t.Errorf("a secret is told: %s", r.stderr)
				}
				if strings.Count(r.stderr, file) != 1 {
					t.Errorf("the file is named twice: %s", r.stderr)
				}
			}
		})
	}
}

func TestConfigFilesThatCannotBeReadAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		filepath.Join(t.TempDir(), "nope"):                       "no such file",
		t.TempDir():                                              "is a directory",
		configFileOf(t, strings.Repeat("#", 1<<20+1)):            "is too large: expected at most 1MiB",
		configFileOf(t, "# "+string([]byte{0xff})+"\nlog = 'x'"): ":1: ",
	} {
		oneErrorLine(t, command{}.run(t.Context(), "config", "check", name), exitFailed, want)
	}
}

func TestAConfigThatNoServerCanRunWithIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"\nredis = '0.0.0.0:0'":                              `:2: redis: "0.0.0.0:0" can be reached`,
		"redis = '127.0.0.1'":                                `:1: redis: expected HOST:PORT`,
		"\nplain-user = 'nobody'":                            `:2: plain-user: there is no user "nobody"`,
		"tls-cert = 'nope'":                                  "toml: TLS needs the certificate of the server and its private key: expected a file of each",
		"pinpriq = 'off'\nbarbershop = 'off'\nredis = 'off'": "no protocol is served",
		"\n[users.ann]\noperate = true":                      `:2: users.ann: nobody can log in as this user: expected hashes, a password-file, certificates`,
		"[users.ann]\ncertificates = ['ann']":                `:2: users.ann.certificates: nobody can log in as this user: its certificates need tls-client-ca`,
	} {
		oneErrorLine(t, command{}.run(t.Context(), "config", "check", configFileOf(t, text)), exitFailed, want)
	}
}

const goodConfig = `
max-conns = 500
redis-disable = ["KEYS", "FLUSHALL"]
drain = "3s"
loop = false
log = "json"

[users.worker]
hashes = ["` + someHash + `"]
certificates = ["worker-1"]
grants = { "jobs.*" = ["push", "take"], "news" = ["look"] }

[users.boss]
operate = true
off = true

[queues."jobs.*"]
lease = "5m"
max-attempts = 3
pause-out = true
enum.class = ["low", "high"]

[queues.other]
`

func TestAConfigMayHaveUsersWhoNeedNoLogin(t *testing.T) {
	file := configFileOf(t, "plain-user = 'shop'\n[users.shop]\ngrants = { '*' = ['push'] }\n[users.ann]\noff = true")
	if r := (command{}).run(t.Context(), "config", "check", file); r.code != exitOK {
		t.Errorf("%+v", r)
	}
}

func TestACheckedConfigNamesFilesThatAllMayWrite(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	text := fmt.Sprintf("data = '%s'\nredis-password-file = '%s'\n[users.ann]\npassword-file = '%s'\n", dir, file("redis"), file("ann"))
	want := file("toml") + " is valid: 1 user, and defaults of queues for 0 globs\n"
	for _, name := range []string{file("toml"), file("ann"), file("redis"), dir} {
		if name != dir {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(name, 0o702); err != nil {
			t.Fatal(err)
		}
		want += "note: all users of this machine may write " + name + ": chmod o-w " + name + "\n"
	}
	if r := (command{}).run(t.Context(), "config", "check", file("toml")); r != (result{exitOK, want, ""}) {
		t.Errorf("%+v, want %q", r, want)
	}
}

func TestAGoodConfigIsRight(t *testing.T) {
	file := configFileOf(t, goodConfig)
	r := command{}.run(t.Context(), "config", "check", file)
	if want := file + " is valid: 2 users, and defaults of queues for 2 globs\n"; r != (result{exitOK, want, ""}) {
		t.Errorf("%+v, want %q", r, want)
	}
}

// inForce are the settings that config show prints as JSON, each with its source.
func inForce(t *testing.T, c command, args ...string) map[string]string {
	t.Helper()
	r := c.run(t.Context(), append([]string{"config", "show", "--json"}, args...)...)
	var all struct {
		Settings map[string]struct {
			Value any
			From  string
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &all); r.code != exitOK || err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	found := make(map[string]string)
	for name, s := range all.Settings {
		found[name] = fmt.Sprintf("%v (%s)", s.Value, s.From)
	}
	return found
}

func TestAFlagWinsOverTheEnvironmentOverTheFileOverTheDefault(t *testing.T) {
	file := configFileOf(t, "max-conns = 1\ncache = '1MiB'\ndrain = '1s'\nlog = 'json'\nredis-password-file = 'x'")
	env := map[string]string{"HOLDFAST_CONFIG": file, "HOLDFAST_MAX_CONNS": "2", "HOLDFAST_CACHE": "2MiB", "HOLDFAST_REDIS_PASSWORD": "secret", "HOLDFAST_LOG": ""}
	got := inForce(t, command{env: env}, "--max-conns", "3")
	for name, want := range map[string]string{
		"max-conns": "3 (flag)", "cache": "2MiB (environment)", "drain": "1s (file)", "log": "json (file)", "sync": "always (default)",
		"redis-password-file": "<nil> (environment)",
	} {
		if got[name] != want {
			t.Errorf("%s is %s, want %s", name, got[name], want)
		}
	}
	if got := inForce(t, command{env: map[string]string{"HOLDFAST_CONFIG": "nope"}}, file)["drain"]; got != "1s (file)" {
		t.Errorf("with a file on the command line, drain is %s", got)
	}
}

func TestAWrongFlagIsNotBlamedOnTheFile(t *testing.T) {
	file := configFileOf(t, "max-conns = 5")
	oneErrorLine(t, command{}.run(t.Context(), "serve", "--config", file, "--max-conns", "0"), exitUsage, "holdfast: --max-conns: expected")
}

func TestWhatConfigShowPrintsIsAConfig(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "all kinds": goodConfig} {
		t.Run(name, func(t *testing.T) {
			file := configFileOf(t, text)
			first := command{}.run(t.Context(), "config", "show", file).stdout
			again := configFileOf(t, strings.ReplaceAll(first, "['not shown']", "['"+someHash+"']"))
			oneCheck(t, again)
			second := command{}.run(t.Context(), "config", "show", again).stdout
			if as := regexp.MustCompile(`# (default|file)\n`); as.ReplaceAllString(first, "") != as.ReplaceAllString(second, "") {
				t.Errorf("shown again it is\n%s\nwant\n%s", second, first)
			}
			if strings.Contains(first, "$2a$10$N9") {
				t.Error("a hash is shown")
			}
		})
	}
}

func TestWhatConfigShowPrintsOfUsersIsRefusedWithoutTheirHashes(t *testing.T) {
	shown := command{}.run(t.Context(), "config", "show", configFileOf(t, goodConfig)).stdout
	oneErrorLine(t, command{}.run(t.Context(), "config", "check", configFileOf(t, shown)), exitFailed, "a hash is none of bcrypt")
}

func oneCheck(t *testing.T, file string) {
	t.Helper()
	if r := (command{}).run(t.Context(), "config", "check", file); r.code != exitOK {
		t.Errorf("%+v", r)
	}
}

func TestTheExamplesThatConfigShowPrintsAreRight(t *testing.T) {
	password := configFileOf(t, "secret\n")
	var lines []string
	for line := range strings.Lines(command{}.run(t.Context(), "config", "show").stdout) {
		line = strings.TrimPrefix(line, "# ")
		if strings.Contains(line, " = ") || strings.HasPrefix(line, "[") {
			lines = append(lines, line)
		}
	}
	text := strings.Join(lines, "")
	text = text[strings.Index(text, "[users."):]
	text = strings.NewReplacer("$2a$10$...", someHash, `"FILE"`, fmt.Sprintf("%q", password)).Replace(text)
	var values map[string]any
	if err := toml.Unmarshal([]byte(text), &values); err != nil || values["queues"] == nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	oneCheck(t, configFileOf(t, text))
}

func TestSecretsAreNotShown(t *testing.T) {
	for _, args := range [][]string{nil, {"--json"}} {
		r := command{env: map[string]string{"HOLDFAST_REDIS_PASSWORD": "secret"}}.run(t.Context(), append([]string{"config", "show"}, args...)...)
		if r.code != exitOK || strings.Contains(r.stdout+r.stderr, "secret") || !strings.Contains(r.stdout, "environment") {
			t.Errorf("%+v, want that the password is set, and not what it is", r)
		}
	}
}

func TestAHashLetsItsPasswordIn(t *testing.T) {
	t.Parallel()
	hash := strings.TrimSpace(command{stdin: "secret\r\n"}.run(t.Context(), "hash").stdout)
	file := configFileOf(t, "[users.a]\nhashes = ['"+hash+"']\ngrants = { q = ['push'] }")
	s := serve(t, t.TempDir(), "--config", file)
	askRedis(t, s, "AUTH a secret\r\nPING\r\n", "+OK\r\n+PONG\r\n")
	for _, password := range []string{"", "\n", strings.Repeat("x", 73), "a\x00b"} {
		oneErrorLine(t, command{stdin: password}.run(t.Context(), "hash"), exitFailed, "expected a password of 1 to 72 bytes")
	}
}
