package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Each shell gets the Tab key for the parts of command lines, which it then carries out.
const (
	bashTypes = "source <(holdfast completion bash)\nholdfast vers\t--js\t\nholdfast compl\tfi\t\nholdfast verify a-f\t\n"
	zshTypes  = `zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'autoload -U compinit && compinit -D -u; source <(holdfast completion zsh); echo rea""dy'
zpty -r z out '*ready*'
zpty -w -n z $'holdfast vers\t--js\t\n'
zpty -r z out '*}*'; print -r -- $out
zpty -w -n z $'holdfast compl\tfi\t\n'
zpty -w -n z $'holdfast verify a-f\t\n'
zpty -w z exit
while zpty -r z out; do print -r -- $out; done`
	fishTypes = `holdfast completion fish | source
holdfast (complete -C 'holdfast vers') (complete -C 'holdfast version --js')
holdfast (complete -C 'holdfast compl') (complete -C 'holdfast completion fi')
holdfast (complete -C 'holdfast verif') (complete -C 'holdfast verify a-f')`
)

func TestSystemShellsCompleteCommandsFlagsValuesAndFiles(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		types string
	}{
		"bash": {[]string{"--norc", "--noprofile", "-i"}, bashTypes},
		"zsh":  {[]string{"-f", "-s"}, zshTypes},
		"fish": {[]string{"--no-config"}, fishTypes},
	} {
		t.Run(name, func(t *testing.T) {
			shell, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("skipped: %v", err)
			}
			home := t.TempDir()
			if err := os.Symlink(executable, filepath.Join(home, "holdfast")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(home, "a-file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, shell, c.args...)
			cmd.Env = []string{asProgram + "=1", "HOME=" + home, "PATH=" + home + ":" + os.Getenv("PATH"), "TERM=xterm"}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal of the tests is not for it
			cmd.Dir, cmd.Stdin = home, strings.NewReader(c.types)
			out, err := cmd.CombinedOutput()
			for _, want := range []string{`{"version":`, "complete -f -c holdfast", "a-file is no whole backup"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("%v, no %q in\n%s", err, want, out)
				}
			}
		})
	}
}

func TestNamesOfQueuesAreCompleted(t *testing.T) {
	s := serve(t, t.TempDir())
	for _, name := range []string{"jobs", "jobs.urgent", "mails", "of words", "$(x)", "\xff"} {
		s.must(t, "push", name, "x")
	}
	s.must(t, "push", "jobs.other", "x", "--db", "1")
	home := t.TempDir()
	pipe := filepath.Join(home, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"holdfast pop --user a --password-file " + pipe + " jo": "",
		"holdfast push jo":                                "jobs jobs.urgent",
		"holdfast list ":                                  "jobs jobs.urgent mails",
		"holdfast move mails jobs.":                       "jobs.urgent",
		"holdfast redrive mails --to ma":                  "mails",
		"holdfast pop --db 1 jo":                          "jobs.other",
		"holdfast pop --db=1 --timeout 1s jo":             "jobs.other",
		"holdfast pop --redis " + nobody + " jo":          "",
		"holdfast pop --redis " + s.addrs["redis"] + " m": "mails",
		"holdfast show *":                                 "",
		"holdfast drop $(":                                "",
		"holdfast get none":                               "",
		"holdfast pop --context none jo":                  "",
	} {
		t.Setenv("COMP_LINE", line) // where the library looks
		c := s.command()
		c.env["COMP_LINE"], c.env["HOME"] = line, home
		r := c.run(t.Context())
		if got := strings.Join(strings.Fields(r.stdout), " "); r.code != exitOK || r.stderr != "" || got != want {
			t.Errorf("%s is completed with %+v; want %q", line, r, want)
		}
	}
}

func TestShellsWithoutCompletionAreNamed(t *testing.T) {
	if r := (command{}).run(t.Context(), "completion", "tcsh"); r.code != exitUsage || !strings.Contains(r.stderr, `must be one of "bash","zsh","fish"`) {
		t.Errorf("%+v, want the shells that have it", r)
	}
}
