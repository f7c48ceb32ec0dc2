package main

import (
	"encoding/json"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/storage"
)

// allCommands is every command there is.
func allCommands() []string {
	return []string{
		"serve", "bench", "push", "pop", "subscribe", "claim", "ack", "nack", "extend", "work", "queues", "stats", "peek", "list", "show",
		"purge", "harvest", "redrive", "move", "set", "get", "close", "drop",
		"backup", "dump", "load", "verify", "compact", "barbershop", "barbershop import", "barbershop export", "completion", "version",
	}
}

func TestEveryCommandHelps(t *testing.T) {
	for _, name := range allCommands() {
		t.Run(name, func(t *testing.T) {
			r := command{}.run(t.Context(), append(strings.Fields(name), "--help")...)
			if r.code != exitOK || r.stderr != "" {
				t.Fatalf("exit code %d, stderr %q", r.code, r.stderr)
			}
			if !regexp.MustCompile(`Examples?:\n\n +holdfast ` + name).MatchString(r.stdout) {
				t.Errorf("no examples in\n%s", r.stdout)
			}
			for _, flag := range regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--([a-z-]+)`).FindAllStringSubmatch(r.stdout, -1) {
				variable := "($HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(flag[1], "-", "_")) + ")"
				if flag[1] != "help" && !strings.Contains(r.stdout, variable) {
					t.Errorf("flag %s does not name its variable %s in\n%s", flag[1], variable, r.stdout)
				}
			}
		})
	}
}

func TestDocumentsNameOnlyFlagsThatExist(t *testing.T) {
	exists := make(map[string]bool)
	for _, name := range allCommands() {
		help := command{}.run(t.Context(), append(strings.Fields(name), "--help")...).stdout
		for _, flag := range regexp.MustCompile(`(?m)^ +(?:-[a-z], |    )(--[a-z-]+)`).FindAllStringSubmatch(help, -1) {
			exists[flag[1]] = true
		}
	}
	exists["--version"] = true // see program.run
	for _, document := range []string{
		"README.md", "CONTRIBUTING.md", "cmd/holdfast/OPERATION.md", "cmd/holdfast/PIPELINES.md", "recovery/README.md", "recovery/dump/DUMP.md", "storage/FORMAT.md",
		"netproto/pinpriq/PROTOCOL.md", "netproto/barbershop/PROTOCOL.md", "netproto/resp/COMMANDS.md", "netproto/admin/PROTOCOL.md",
	} {
		text := string(readFile(t, "../../"+document))
		for _, flag := range regexp.MustCompile("[ `](--[a-z]+[a-z-]*)").FindAllStringSubmatch(text, -1) {
			if !exists[flag[1]] {
				t.Errorf("%s names %s, which no command has", document, flag[1])
			}
		}
	}
}

func TestHelpTellsTheExitCodes(t *testing.T) {
	r := command{}.run(t.Context(), "--help")
	if r.code != exitOK || !strings.Contains(strings.Join(strings.Fields(r.stdout), " "),
		"0 done, 1 error, 2 wrong usage, 3 nothing there, 4 the claim has ended. Of verify: 0 sound, 1 not sound, 2 not checked.") {
		t.Errorf("%+v, want the exit codes", r)
	}
}

func TestVariablesStandInForFlags(t *testing.T) {
	s := serve(t, t.TempDir())
	for name, c := range map[string]struct {
		value string
		flag  []string
		want  string // prefix of what pop prints
	}{
		"set":                   {"true", nil, `{"selected":true`},
		"empty is not set":      {"", nil, "x\n"},
		"the flag wins":         {"true", []string{"--json=false"}, "x\n"},
		"a number does as well": {"1", nil, `{"selected":true`},
	} {
		t.Run(name, func(t *testing.T) {
			s.must(t, "push", "q", "x")
			env := map[string]string{"HOLDFAST_REDIS": s.addrs["redis"], "HOLDFAST_JSON": c.value}
			r := command{env: env}.run(t.Context(), append([]string{"pop", "q"}, c.flag...)...)
			if r.code != exitOK || !strings.HasPrefix(r.stdout, c.want) {
				t.Errorf("%+v, want %q", r, c.want)
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
	if v.Version != release || v.Commit == "" || v.Date == "" || v.Go != runtime.Version() || v.OS != runtime.GOOS || v.Arch != runtime.GOARCH || v.Format != storage.FormatVersion {
		t.Errorf("%+v, want this build and format %d", v, storage.FormatVersion)
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

func TestSizesAreRead(t *testing.T) {
	for text, want := range map[string]byteSize{
		"0": 0, "1": 1, "512B": 512, "64KiB": 64 << 10, "64MiB": 64 << 20, "2gib": 2 << 30, "1kB": 1000, "3MB": 3e6, "1GB": 1e9,
		"8589934591GiB": 8589934591 << 30,
	} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MiB", "1 MiB", "8589934592GiB", "9223372036854775808", "1TiB", "x"} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %d, want an error", text, got)
		}
	}
}

func TestSizesAreWritten(t *testing.T) {
	for size, want := range map[byteSize]string{0: "0B", 1023: "1023B", 64 << 10: "64KiB", 32 << 20: "32MiB", 3 << 30: "3GiB", 1025: "1025B"} {
		if got := size.String(); got != want {
			t.Errorf("%d bytes are written %q, want %q", size, got, want)
		}
	}
}
