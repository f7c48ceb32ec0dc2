package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// section returns what stands under a heading of a document.
func section(t *testing.T, document, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(string(readFile(t, "../../"+document)), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no %q", document, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// blocks returns the code of a language in a text.
func blocks(t *testing.T, text, language string) (all []string) {
	t.Helper()
	for _, block := range strings.Split(text, "```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(block, "```")
		all = append(all, code)
	}
	if len(all) == 0 {
		t.Fatalf("no code of %s in\n%s", language, text)
	}
	return all
}

// shell returns a shell that has not begun, in a folder where bin/holdfast is this program.
func shell(t *testing.T, s *testServer, name string, args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(executable, filepath.Join(bin, "holdfast")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = dir, patience
	cmd.Env = append(os.Environ(), asProgram+"=1")
	for protocol, addr := range s.addrs {
		cmd.Env = append(cmd.Env, "HOLDFAST_"+strings.ToUpper(protocol)+"="+addr)
	}
	return cmd
}

// script runs lines in a shell to their good end, and returns what they print.
func script(t *testing.T, s *testServer, name, lines string) string {
	t.Helper()
	cmd := shell(t, s, name, "-c", "set -e; PATH=$PWD/bin:$PATH\n"+lines)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v, printed %q; stderr %s", err, got, &stderr)
	}
	return string(got)
}

// typing is a shell that somebody types into.
type typing struct {
	in  io.Writer
	out *bufio.Reader
}

// typeInto starts a shell for the rest of the test.
func typeInto(t *testing.T, cmd *exec.Cmd) *typing {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	return &typing{in, bufio.NewReader(out)}
}

// line types a line and returns what it prints.
func (s *typing) line(t *testing.T, line string) string {
	t.Helper()
	const end = "the line has ended"
	if _, err := fmt.Fprintf(s.in, "%s\necho %s\n", line, end); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	for {
		text, err := s.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v after %s", line, err, &printed)
		} else if text == end+"\n" {
			return printed.String()
		}
		printed.WriteString(text)
	}
}

func TestSystemTheFirstSessionOfTheReadmeRunsThoughTheServerIsKilledBeforeEachLine(t *testing.T) {
	session := strings.Join(blocks(t, section(t, "README.md", "## A first session"), "console"), "")
	dir := t.TempDir()
	cmd, s := process(t, "--data", dir)
	typing := typeInto(t, shell(t, s, "sh"))
	_, try, _ := strings.Cut(strings.TrimSpace(blocks(t, string(readFile(t, "../../README.md")), "sh")[0]), "\n")
	if got := typing.line(t, try); got != "hello\n" {
		t.Errorf("%s prints %q, want hello", try, got)
	}
	times, spaces := regexp.MustCompile(`\b[0-9]+m?s\b`), regexp.MustCompile(` +`)
	same := func(text string) string { return spaces.ReplaceAllString(times.ReplaceAllString(text, "TIME"), " ") }
	for _, step := range strings.Split(session, "$ ")[1:] {
		_ = cmd.Process.Kill()
		s.stop()
		cmd, s = process(t, "--data", dir, "--redis", s.addrs["redis"], "--pinpriq", s.addr)
		line, want, _ := strings.Cut(step, "\n")
		if got := typing.line(t, line); same(got) != same(want) {
			t.Errorf("%s prints\n%s\nwant\n%s", line, got, want)
		}
	}
}

func TestSystemTheBackupOfTheReadmeIsRestored(t *testing.T) {
	steps := blocks(t, section(t, "README.md", "## Backup and restore"), "sh")
	dir := t.TempDir()
	s := serve(t, filepath.Join(dir, "holdfast-data"), "--admin", "127.0.0.1:0")
	s.must(t, "push", "jobs", "hello")
	field(t, script(t, s, "sh", "cd "+dir+"\n"+steps[0]), "sound")
	s.stop()
	s = serve(t, filepath.Join(dir, "restored"))
	if got := s.must(t, "pop", "jobs"); got != "hello\n" {
		t.Errorf("the restored folder has %q, want hello", got)
	}
}

func TestSystemTheBackupsOfAnOperatorAreRestored(t *testing.T) {
	const document = "cmd/holdfast/OPERATION.md"
	backups := blocks(t, section(t, document, "## Backups"), "sh")[0]
	offline := blocks(t, section(t, document, "### Offline commands"), "sh")[0]
	dir := t.TempDir()
	s := serve(t, filepath.Join(dir, "holdfast-data"), "--admin", "127.0.0.1:0")
	s.must(t, "push", "jobs", "hello")
	script(t, s, "sh", "cd "+dir+"\n"+backups)
	s.stop()
	got := script(t, s, "sh", "cd "+dir+"\n"+offline)
	field(t, got, "sound")
	field(t, got, "hello")
	for _, restored := range []string{"restored", "restored2"} {
		s = serve(t, filepath.Join(dir, restored))
		if got := s.must(t, "pop", "jobs"); got != "hello\n" {
			t.Errorf("the folder %s has %q, want hello", restored, got)
		}
		s.stop()
	}
}

func TestSystemARedisClientWorksAsTheReadmeShows(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("redis-cli is not installed")
	}
	s := serve(t, t.TempDir())
	text := section(t, "README.md", "## Workers")
	host, port, _ := strings.Cut(s.addrs["redis"], ":")
	code := strings.ReplaceAll(blocks(t, text, "sh")[0], "redis-cli", "redis-cli -e -h "+host+" -p "+port)
	code = strings.ReplaceAll(code, "ID TOKEN", "1 2") // those of a new folder
	got := strings.Split(strings.TrimSpace(script(t, s, "sh", code)), "\n")
	if first, last := got[0], got[len(got)-1]; first != "1" || last != "1" {
		t.Errorf("printed %q, want an id first, and one acknowledged packet last", got)
	}
	field(t, strings.Join(got, " "), "payload to cid")
}

func TestSystemBashSpeaksPinpriqAsTheDocumentShows(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	s := serve(t, t.TempDir())
	text := section(t, "netproto/pinpriq/PROTOCOL.md", "### Example")
	code := strings.Replace(blocks(t, text, "sh")[0], "/127.0.0.1/7070", "/"+strings.Replace(s.addr, ":", "/", 1), 1)
	if got := script(t, s, "bash", code); strings.Join(strings.Fields(got), " ") != `\0 001 \0 001 \0 005 k h e l l o` {
		t.Errorf("bash prints %q", got)
	}
}

func TestSystemThePipelineOfCommandsRuns(t *testing.T) {
	s := serve(t, t.TempDir())
	code := blocks(t, string(readFile(t, "PIPELINES.md")), "sh")[0]
	got := script(t, s, "sh", code+"wait\n")
	var lines []string
	for _, line := range regexp.MustCompile(`(?m)^\d+: (\w+)$`).FindAllStringSubmatch(got, -1) { // not what set prints
		lines = append(lines, line[1])
	}
	if want := "ONE TWO THREE FOUR FIVE SIX SEVEN"; strings.Join(lines, " ") != want {
		t.Errorf("printed %q, want the lines %s", got, want)
	}
	for _, queue := range []string{"lines", "upper", "numbers"} {
		field(t, s.must(t, "stats", queue, "--json"), `"acked":7`)
		field(t, s.must(t, "get", queue, "--json"), `"closed":true`)
	}
}
