package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestThePipelineOfTheReadmeRuns(t *testing.T) {
	_, section, _ := strings.Cut(string(readFile(t, "../../README.md")), "### Pipelines of commands\n")
	_, script, found := strings.Cut(section, "```sh\n")
	if script, _, _ = strings.Cut(script, "```"); !found {
		t.Fatal("the README has no pipeline")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(exe, filepath.Join(bin, "holdfast")); err != nil {
		t.Fatal(err)
	}
	s := serve(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sh := exec.CommandContext(ctx, "sh", "-c", script+"wait\n")
	sh.Env = append(os.Environ(), asProgram+"=1", "HOLDFAST_REDIS="+s.addrs["redis"], "PATH="+bin+":"+os.Getenv("PATH"))
	sh.WaitDelay = patience
	var stderr strings.Builder
	sh.Stderr = &stderr
	got, err := sh.Output()
	var lines []string
	for _, line := range regexp.MustCompile(`(?m)^\d+: (\w+)$`).FindAllStringSubmatch(string(got), -1) { // not what set prints
		lines = append(lines, line[1])
	}
	if want := "ONE TWO THREE FOUR FIVE SIX SEVEN"; err != nil || strings.Join(lines, " ") != want {
		t.Errorf("%v, printed %q, want the lines %s; stderr %s", err, got, want, &stderr)
	}
	for _, queue := range []string{"lines", "upper", "numbers"} {
		field(t, s.must(t, "stats", queue, "--json"), `"acked":7`)
		field(t, s.must(t, "get", queue, "--json"), `"closed":"yes"`)
	}
}
