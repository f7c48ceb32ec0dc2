package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

func TestEachKnownErrorIsPrintedWithItsRemedy(t *testing.T) {
	for _, r := range remedies() {
		var stderr bytes.Buffer
		p := program{Process: terminal.Process{Stderr: &stderr}}
		p.tell(fmt.Errorf("open: %w: a detail", r.is), exitFailed)
		if want := fmt.Sprintf("holdfast: open: %v: a detail; %s\n", r.is, r.do); stderr.String() != want {
			t.Errorf("printed %q, want %q", stderr.String(), want)
		}
	}
}

func TestRemediesNameFlagsThatThereAre(t *testing.T) {
	help := fmt.Sprint(helps())
	for _, r := range remedies() {
		for _, flag := range regexp.MustCompile("--[a-z-]+").FindAllString(r.do, -1) {
			if !strings.Contains(help, " "+flag) {
				t.Errorf("the remedy of %q names %s, which no command has", r.is, flag)
			}
		}
	}
}

func TestErrorsOfTemporaryFilesNameWhereTheyGo(t *testing.T) {
	dir := filled(t)
	temp := filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", temp)
	oneErrorLine(t, cli(t, "dump", dir), exitFailed, "; temporary files go to "+temp+": set TMPDIR to a folder")
	oneErrorLine(t, cli(t, "verify", dir), exitNotChecked, "; temporary files go to "+temp+": set TMPDIR to a folder")
	if got := remedyOf(os.ErrPermission); got != "" {
		t.Errorf("an error that is not known: %q, want no remedy", got)
	}
}

func TestWithoutAListOfTablesTheAdviceIsTheBackup(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(list string) error{
		"missing": os.Remove,
		"changed": func(list string) error { return os.WriteFile(list, []byte("x"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := stored(t)
			if err := harm(filepath.Join(dir, "db", "MANIFEST")); err != nil {
				t.Fatal(err)
			}
			const advice = "; restore a copy: without the list of tables nothing can be salvaged"
			oneErrorLine(t, cli(t, "dump", dir, "--salvage"), exitFailed, advice)
			oneErrorLine(t, cli(t, "verify", dir), exitNotChecked, advice)
			oneErrorLine(t, cli(t, "serve", "--data", dir, "--pinpriq", "127.0.0.1:0", "--barbershop", "off", "--redis", "off", "--admin", "off"), exitFailed, advice)
		})
	}
}
