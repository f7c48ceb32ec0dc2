package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// allCommands is every command there is.
func allCommands() []string {
	return []string{
		"serve", "bench", "push", "pop", "subscribe", "claim", "ack", "nack", "extend", "work", "queues", "stats", "peek", "list", "show",
		"tail", "consumers", "shares", "producers", "purge", "harvest", "redrive", "move", "cancel", "delete", "prio", "run", "set", "unset", "get", "share", "pause", "resume", "close", "drop",
		"backup", "dump", "load", "restore", "verify", "compact", "barbershop", "barbershop import", "barbershop export", "completion", "man", "version",
		"status", "health", "reload", "connections", "users", "doctor", "help", "tls", "tls init", "tls renew", "context", "context list", "context show", "metrics", "metrics rules", "metrics dashboard",
		"config", "config check", "config show", "hash", "cluster", "cluster found", "cluster status", "cluster remove", "cluster hand-over", "cluster leave",
	}
}

func TestEveryCommandHelps(t *testing.T) {
	golden := string(readFile(t, "testdata/golden/help.txt"))
	for _, name := range allCommands() {
		t.Run(name, func(t *testing.T) {
			r := command{}.run(t.Context(), append(strings.Fields(name), "--help")...)
			if r.code != exitOK || r.stderr != "" {
				t.Fatalf("exit code %d, stderr %q", r.code, r.stderr)
			}
			if !regexp.MustCompile(`Examples?:\n\n +holdfast ` + name).MatchString(r.stdout) {
				t.Errorf("no examples in\n%s", r.stdout)
			}
			if !strings.Contains(golden, "\n80$ holdfast "+name+" --help\n") {
				t.Error("the golden file lacks its help")
			}
			if as := (command{}).run(t.Context(), append([]string{"help"}, strings.Fields(name)...)...); name != "help" && as != r {
				t.Errorf("the command help says %+v, want %+v", as, r)
			}
		})
	}
	if r, want := (command{}).run(t.Context(), "help"), (command{}).run(t.Context(), "--help"); r != want {
		t.Errorf("help alone says %+v, want %+v", r, want)
	}
	oneErrorLine(t, command{}.run(t.Context(), "help", "nope"), exitUsage, `there is no command "nope"; see holdfast --help`)
}

// helps is the help of each command.
var helps = sync.OnceValue(func() map[string]string {
	all := make(map[string]string)
	for _, name := range allCommands() {
		all[name] = command{}.run(context.Background(), append(strings.Fields(name), "--help")...).stdout
	}
	return all
})

// variablesOf are the environment variables that the help of a command names.
func variablesOf(name string) []string {
	return regexp.MustCompile(`\$HOLDFAST_[A-Z_]+`).FindAllString(helps()[name], -1)
}

func TestServeHasAVariableForEachFlag(t *testing.T) {
	help := helps()["serve"]
	for _, flag := range regexp.MustCompile(`(?m)^ +--([a-z-]+)`).FindAllStringSubmatch(help, -1) {
		variable := "($HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(flag[1], "-", "_")) + ")"
		if !strings.Contains(help, variable) {
			t.Errorf("flag %s does not name its variable %s in\n%s", flag[1], variable, help)
		}
	}
}

func TestOtherCommandsHaveVariablesOnlyForTheServerAndTheWayToIt(t *testing.T) {
	var found []string
	for _, name := range allCommands() {
		if name != "serve" && name != "config show" { // which has the flags of serve
			found = append(found, variablesOf(name)...)
		}
	}
	slices.Sort(found)
	want := []string{
		"$HOLDFAST_ADMIN", "$HOLDFAST_BARBERSHOP", "$HOLDFAST_CONTEXT", "$HOLDFAST_CONTEXTS", "$HOLDFAST_DB", "$HOLDFAST_PASSWORD", "$HOLDFAST_PASSWORD_FILE", "$HOLDFAST_PINPRIQ",
		"$HOLDFAST_REDIS", "$HOLDFAST_TIMEOUT", "$HOLDFAST_TLS", "$HOLDFAST_TLS_CA", "$HOLDFAST_TLS_CERT", "$HOLDFAST_TLS_KEY", "$HOLDFAST_USER",
	}
	if found = slices.Compact(found); !slices.Equal(found, want) {
		t.Errorf("variables %q, want %q", found, want)
	}
}

// A script that counts first must not take one packet, or change all of them, where it found none.
func TestNoNumberOfPacketsIsZero(t *testing.T) {
	arguments := map[string]string{"move": "q r", "bench": ""}
	found := 0
	for _, name := range allCommands() {
		if !strings.Contains(helps()[name], " --count=") {
			continue
		}
		found++
		queues, ok := arguments[name]
		if !ok {
			queues = "q"
		}
		args := append(strings.Fields(name+" "+queues), "--count", "0")
		oneErrorLine(t, command{}.run(t.Context(), args...), exitUsage, `--count: expected a whole number`)
	}
	if found < 8 {
		t.Errorf("%d commands have --count", found)
	}
	for _, line := range []string{"claim q --lease 0s", "push q x --lease 0s", "push q x --unique 1 --window 0s"} {
		oneErrorLine(t, command{}.run(t.Context(), strings.Fields(line)...), exitUsage, "expected 1ms to 3650d")
	}
}

func TestVariablesDoNotConfirmOrChoosePackets(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "x")
	s.must(t, "push", "q", "y")
	env := map[string]string{"HOLDFAST_REDIS": s.addrs["redis"], "HOLDFAST_YES": "true", "HOLDFAST_STATE": "dead", "HOLDFAST_COUNT": "1",
		"HOLDFAST_FILTER": "nothing", "HOLDFAST_TO": "other", "HOLDFAST_JSON": "true", "HOLDFAST_DRY_RUN": "true"}
	oneErrorLine(t, command{env: env}.run(t.Context(), "purge", "q"), exitUsage, "this would delete 2 packets")
	if r := (command{env: env}).run(t.Context(), "purge", "q", "--yes"); r.stdout != "2 packets deleted\n" {
		t.Errorf("%+v, want both packets deleted", r)
	}
}

func TestDocumentsNameOnlyFlagsThatExist(t *testing.T) {
	exists := make(map[string]bool)
	for _, help := range helps() {
		for _, flag := range regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--(\[no-\])?([a-z-]+)`).FindAllStringSubmatch(help, -1) {
			exists["--"+flag[2]] = true
			exists["--no-"+flag[2]] = flag[1] != "" || exists["--no-"+flag[2]]
		}
	}
	exists["--version"] = true // see program.run
	exists["--rm"] = true      // of docker, which OPERATION.md has run the image
	for _, document := range []string{
		"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "cmd/holdfast/OPERATION.md", "cmd/holdfast/PIPELINES.md", "recovery/README.md", "recovery/dump/DUMP.md", "storage/FORMAT.md",
		"netproto/pinpriq/PROTOCOL.md", "netproto/barbershop/PROTOCOL.md", "netproto/resp/COMMANDS.md", "netproto/admin/PROTOCOL.md", "cmd/daemon/metrics/METRICS.md",
		"cmd/holdfast/packaging/compose.yaml", "cmd/holdfast/packaging/compose-tls.yaml", "cmd/holdfast/packaging/kubernetes.yaml",
	} {
		text := string(readFile(t, "../../"+document))
		for _, flag := range regexp.MustCompile("[ `](--[a-z]+[a-z-]*)(` is gone)?").FindAllStringSubmatch(text, -1) {
			if gone := flag[2] != ""; exists[flag[1]] == gone {
				t.Errorf("%s says %s; a command has it: %v", document, flag[0], exists[flag[1]])
			}
		}
	}
}

func TestHelpThatNobodyReadsToItsEndEndsWithoutAWord(t *testing.T) {
	reads, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writes.Close()
	reads.Close()
	if r := (command{stdout: writes}).run(t.Context(), "serve", "--help"); r != (result{code: exitFailed}) {
		t.Errorf("%+v", r)
	}
}

func TestHelpTellsTheExitCodes(t *testing.T) {
	r := command{}.run(t.Context(), "--help")
	if r.code != exitOK || !strings.Contains(strings.Join(strings.Fields(r.stdout), " "),
		"0 done, 1 error, 2 wrong usage, 3 nothing there, 4 the claim has ended, 5 something needs somebody (status). Of verify: 0 sound, 1 not sound, 2 not checked.") {
		t.Errorf("%+v, want the exit codes", r)
	}
}

func TestVariablesStandInForFlags(t *testing.T) {
	s := serve(t, t.TempDir())
	for name, c := range map[string]struct {
		value string
		flag  []string
		code  int
	}{
		"set":              {"soon", nil, exitUsage},
		"empty is not set": {"", nil, exitOK},
		"the flag wins":    {"soon", []string{"--timeout=5s"}, exitOK},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"HOLDFAST_REDIS": s.addrs["redis"], "HOLDFAST_TIMEOUT": c.value}
			if r := (command{env: env}).run(t.Context(), append([]string{"queues"}, c.flag...)...); r.code != c.code {
				t.Errorf("%+v, want exit code %d", r, c.code)
			}
		})
	}
}

func TestVersionSaysWhatTheBinaryIs(t *testing.T) {
	r := command{}.run(t.Context(), "version", "--json")
	var v versions
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatal(err)
	}
	if v.Version != release || v.Commit == "" || v.Date == "" || v.Go != runtime.Version() || v.OS != runtime.GOOS || v.Arch != runtime.GOARCH || v.Format != content.FormatVersion {
		t.Errorf("%+v, want this build and format %d", v, content.FormatVersion)
	}
	plain := (command{}).run(t.Context(), "version")
	for _, want := range []string{"holdfast " + v.Version + " (", "commit " + v.Commit[:min(12, len(v.Commit))], "date " + v.Date, "data format"} {
		if !strings.Contains(plain.stdout, want) {
			t.Errorf("plain %+v, want %q", plain, want)
		}
	}
	if asFlag := (command{}).run(t.Context(), "--version"); asFlag != plain {
		t.Errorf("as a flag %+v, want %+v", asFlag, plain)
	}
	if asFlag := (command{}).run(t.Context(), "--version", "--json"); asFlag != r {
		t.Errorf("as a flag %+v, want %+v", asFlag, r)
	}
}

func TestVersionReadsWhatTheBuildRecorded(t *testing.T) {
	stamped := debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-11-20T15:00:00Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	v := versionsOf(&stamped)
	if v.Commit != "abc" || v.Date != "2026-11-20T15:00:00Z" || !v.Modified {
		t.Errorf("%+v, want what the build recorded", v)
	}
	for name, info := range map[string]*debug.BuildInfo{"no record": nil, "no git": {}} {
		if v := versionsOf(info); v.Version != release || v.Commit != "unknown" || v.Date != "unknown" || v.Modified {
			t.Errorf("%s: %+v, want unknown", name, v)
		}
	}
}

func TestTheChangelogBeginsWithTheRelease(t *testing.T) {
	_, newest, _ := strings.Cut(string(readFile(t, "../../CHANGELOG.md")), "\n## ")
	if got, _, _ := strings.Cut(newest, " "); got != release {
		t.Errorf("the newest release is %q, want %s", got, release)
	}
}

func TestThePackagesOfClientsHaveTheRelease(t *testing.T) {
	for file, want := range map[string]string{"python/pyproject.toml": "version = %q", "node/package.json": "\"version\": %q,"} {
		if want = fmt.Sprintf(want, release); !regexp.MustCompile(`(?m)^ *` + want + `$`).Match(readFile(t, "../../netproto/client/"+file)) {
			t.Errorf("%s has no line %s", file, want)
		}
	}
}

func TestSizesAreRead(t *testing.T) {
	for text, want := range map[string]terminal.ByteSize{
		"0": 0, "1B": 1, "512B": 512, "64KiB": 64 << 10, "64MiB": 64 << 20, "2gib": 2 << 30, "1kB": 1000, "3MB": 3e6, "1GB": 1e9,
		"8589934591GiB": 8589934591 << 30,
	} {
		var got terminal.ByteSize
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "00064", "MiB", "-1", "1.5MiB", "1 MiB", "8589934592GiB", "9223372036854775808", "1TiB", "x"} {
		var got terminal.ByteSize
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %d, want an error", text, got)
		}
	}
}

func TestSizesAreWritten(t *testing.T) {
	for size, want := range map[terminal.ByteSize]string{0: "0B", 1023: "1023B", 64 << 10: "64KiB", 32 << 20: "32MiB", 3 << 30: "3GiB", 1025: "1025B"} {
		if got := size.String(); got != want {
			t.Errorf("%d bytes are written %q, want %q", size, got, want)
		}
	}
}

func TestTheReadmeNamesOnlyCommandsThatExist(t *testing.T) {
	readme := string(readFile(t, "../../README.md"))
	named := regexp.MustCompile("[$`] ?(?:bin/)?holdfast ([a-z]+)").FindAllStringSubmatch(readme, -1)
	for _, name := range named {
		if !slices.Contains(allCommands(), name[1]) {
			t.Errorf("the README names the command %s, which does not exist", name[1])
		}
	}
	if len(named) < 5 {
		t.Errorf("found only %d commands in the README", len(named))
	}
}
