package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// reloadable is a server inside the test whose config file the test changes.
type reloadable struct {
	*testServer
	t       *testing.T
	file    string // its config file
	hangups chan os.Signal
	lines   chan map[string]any // of its log, about reloads
}

func (r *reloadable) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// reloadableServer runs a server with a config file, which may be empty, and more flags.
func reloadableServer(t *testing.T, config string, args ...string) *reloadable {
	t.Helper()
	r := &reloadable{t: t, file: filepath.Join(t.TempDir(), "holdfast.toml"), hangups: make(chan os.Signal), lines: make(chan map[string]any, 100)}
	r.write(r.file, config)
	c := command{stderr: r, hangups: func() <-chan os.Signal { return r.hangups }}
	r.testServer = c.serve(t, t.TempDir(), append([]string{"--config", r.file, "--pinpriq", "off", "--admin", "127.0.0.1:0"}, args...)...)
	return r
}

// Write implements io.Writer for a line of the log.
func (r *reloadable) Write(b []byte) (int, error) {
	var line map[string]any
	_ = json.Unmarshal(b, &line)
	if msg := fmt.Sprint(line["msg"]); strings.HasPrefix(msg, "reload") || strings.Contains(msg, "need a restart") {
		r.lines <- line
	}
	return len(b), nil
}

// reload has the server reload, and wants lines of its log that begin so. *… stands for any
// text.
func (r *reloadable) reload(want ...string) {
	r.t.Helper()
	r.hangups <- syscall.SIGHUP
	for _, want := range want {
		select {
		case line := <-r.lines:
			got := fmt.Sprintf("%v %v %v %v", line["msg"], line["changed"], line["error"], line["keys"])
			if begin, rest, _ := strings.Cut(want, "*…"); !strings.HasPrefix(got, begin) || !strings.Contains(got, rest) {
				r.t.Fatalf("the log says %s, want %s", got, want)
			}
		case <-time.After(patience):
			r.t.Fatalf("the log does not say %s", want)
		}
	}
}

const withAlice = `
[users.alice]
password-file = "%s"
grants = { "*" = ["push", "take", "look", "manage"] }
`

// lease wants the lease of claims of the queue jobs.a.
func (r *reloadable) lease(password, want string) {
	r.t.Helper()
	askRedis(r.t, r.testServer, "AUTH alice "+password+"\r\nQGET jobs.a\r\n", "+OK\r\n*58\r\n$12\r\nmax-attempts\r\n:5\r\n$5\r\nlease\r\n:"+want+"\r\n")
}

func (r *reloadable) login(password, reply string) {
	r.t.Helper()
	askRedis(r.t, r.testServer, "AUTH alice "+password+"\r\n", reply)
}

func TestAReloadBringsUsersTheLogLevelAndDefaultsOfQueues(t *testing.T) {
	t.Parallel()
	password := configFileOf(t, "first")
	alice := fmt.Sprintf(withAlice, password)
	r := reloadableServer(t, alice)
	askRedis(t, r.testServer, "AUTH alice first\r\nLPUSH jobs.a x\r\n", "+OK\r\n:1\r\n")
	r.write(password, "second")
	r.reload("reloaded [users.alice]")
	r.login("second", "+OK\r\n")
	r.login("first", "-WRONGPASS")

	r.write(r.file, "log-level = 'debug'\n"+alice+"[queues.'jobs.*']\nlease = '7s'\n[queues.'*']\nlease = '8s'\n[users.bob]\n")
	r.reload(`reloaded [users.bob queues."*" queues."jobs.*" log-level]`)
	r.lease("second", "7000")
	r.write(r.file, "log-level = 'error'\n"+alice)
	r.reload("reloaded")
	r.lease("second", "30000")
	r.write(r.file, alice)
	r.reload("reloaded [log-level]")
	r.reload("reloaded []")
}

func TestAnOperatorHasAServerReload(t *testing.T) {
	t.Parallel()
	password := configFileOf(t, "first")
	alice := fmt.Sprintf(withAlice, password) + "operate = true\n"
	bob := "[users.bob]\npassword-file = '" + password + "'\ngrants = { '*' = ['manage'] }\n"
	r := reloadableServer(t, alice+bob)
	reload := func(args ...string) result {
		return r.run(t, append([]string{"reload", "--admin", r.addrs["admin"], "--user", "alice", "--password-file", password}, args...)...)
	}
	for _, step := range []struct{ config, json, want string }{
		{alice + bob, "", "reloaded: nothing has changed\n"},
		{"log-level = 'debug'\nmax-conns = 200\n" + alice + bob + "[queues.'jobs.*']\nlease = '7s'\n", "", "reloaded: queues.\"jobs.*\", log-level\na restart is needed for: max-conns\n"},
		{alice + bob, "--json", `{"changed":["queues.\"jobs.*\"","log-level"],"restart":[]}` + "\n"},
	} {
		r.write(r.file, step.config)
		if got := reload(strings.Fields(step.json)...); got.stdout != step.want || got.code != exitOK {
			t.Errorf("it prints %+v, want %q", got, step.want)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+r.addrs["admin"]+"/page/settings", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("alice", "first")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	for _, want := range []string{`{"name":"log-level","value":"info","from":"default"}`, `{"name":"max-conns","value":"`, `{"name":"admin","value":"127.0.0.1:0","from":"flag"}`} {
		if !strings.Contains(string(said), want) || err != nil {
			t.Errorf("the page tells the settings %v %s, want %s", err, said, want)
		}
	}
	r.write(r.file, "laese = '8s'\n"+alice)
	oneErrorLine(t, reload(), exitFailed, "laese: unknown key")
	oneErrorLine(t, r.run(t, "reload", "--admin", r.addrs["admin"], "--user", "bob", "--password-file", password), exitFailed, "refuses what this user asks")
}

func TestAReloadThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	password := configFileOf(t, "first")
	alice := fmt.Sprintf(withAlice, password) + "[queues.'jobs.*']\nlease = '7s'\n"
	r := reloadableServer(t, alice)
	askRedis(t, r.testServer, "AUTH alice first\r\nLPUSH jobs.a x\r\n", "+OK\r\n:1\r\n")
	for text, want := range map[string]string{
		"log-level = 'loud'\n[queues.'jobs.*']\nlease = '8s'\n":  "holdfast.toml:1: log-level: ",
		"log-level = 'error'\n" + alice + "laese = '8s'":         "laese: unknown setting",
		"log-level = 'error'\n[queues.'jobs.*']\nlease = '8s'\n": "start it again", // without users
		"": "start it again",
	} {
		r.write(password, "second")
		r.write(r.file, text)
		r.reload("reload failed *…" + want)
	}
	r.write(password, "first")
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	r.reload("reload failed")
	r.login("first", "+OK\r\n")
	r.lease("first", "7000")
	r.write(r.file, alice)
	r.reload("reloaded []") // at the level info, which no failed reload has changed
}

func TestAReloadReadsNoFileThatMayKeepItWaiting(t *testing.T) {
	t.Parallel()
	password := configFileOf(t, "first")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	alice := fmt.Sprintf(withAlice, password)
	r := reloadableServer(t, alice)
	r.write(r.file, fmt.Sprintf(withAlice, pipe))
	r.reload("reload failed *…/pipe is no regular file")
	if err := errors.Join(os.Remove(r.file), os.Symlink(pipe, r.file)); err != nil {
		t.Fatal(err)
	}
	r.reload("reload failed *…/holdfast.toml is no regular file")
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	r.write(r.file, alice)
	r.reload("reloaded []")
}

func TestAReloadSwitchesTheUserOfPlainConnectionsOff(t *testing.T) {
	t.Parallel()
	const config = "plain-user = 'shop'\n[users.shop]\ngrants = { '*' = ['push'] }\n"
	r := reloadableServer(t, config)
	r.write(r.file, config+"off = true\n")
	r.reload("reloaded [users.shop]")
	r.write(r.file, config)
	r.reload("reloaded [users.shop]")
}

func TestAReloadNamesWhatNeedsARestart(t *testing.T) {
	t.Parallel()
	r := reloadableServer(t, "max-conns = 100\ncache = '1MiB'\n")
	r.write(r.file, "max-conns = 200\nadmin = '127.0.0.1:1'\n") // the flag --admin wins
	for range 2 {
		r.reload("reloaded []", "settings have changed that need a restart <nil> <nil> [cache max-conns]")
	}
	r.write(r.file, "max-conns = 100\ncache = '1MiB'\n")
	r.reload("reloaded []")
	r.write(r.file, "[users.alice]\n")
	r.reload("reload failed")
}

func TestSystemAHangupReloadsAServerWithoutAConfigFile(t *testing.T) {
	password := configFileOf(t, "first")
	cmd, s := process(t, "--data", t.TempDir(), "--redis-password-file", password)
	if err := os.WriteFile(password, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	second := configFileOf(t, "second")
	for s.run(t, "push", "q", "x", "--password-file", second).code != exitOK {
		if t.Context().Err() != nil {
			t.Fatal("the new password is not in force")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.stop(); code != exitOK {
		t.Errorf("exit code %d, want 0", code)
	}
}
