package redissuite

import (
	"bufio"
	"context"
	"flag"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

var (
	suite  = flag.Bool("suite", false, "run TestRedisSuite: it fetches Redis's source and takes minutes")
	source = flag.String("source", "", "folder of Redis's source, in place of fetching it")
	target = flag.String("target", "", "host:port of a server to test, in place of one that the test starts; its data is deleted")
	only   = flag.String("only", "", "one file of the suite, such as unit/type/list, in place of all")
)

// files of the suite that concern commands that are served.
var files = []string{
	"unit/type/list", "unit/type/list-2", "unit/type/list-3", "unit/type/string", "unit/type/hash", "unit/type/incr",
	"unit/expire", "unit/keyspace", "unit/scan", "unit/multi", "unit/protocol", "unit/pubsub", "unit/limits", "unit/querybuf",
	"unit/auth", "unit/quit", "unit/other", "unit/info", "unit/introspection", "unit/introspection-2",
	"integration/redis-cli",
}

// denied are tags of tests that need what only Redis has: its debugger, replicas, snapshots,
// eviction, statistics.
const denied = "-needs:debug -needs:repl -needs:save -needs:config-maxmemory -needs:config-resetstat -needs:latency -needs:local-process -cluster"

func TestRedisSuite(t *testing.T) {
	if !*suite {
		t.Skip("runs with -suite only: see make redis-suite")
	}
	folder := adapted(t)
	addr := *target
	if addr == "" {
		addr = serve(t)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"tests/test_helper.tcl", "--host", host, "--port", port, "--singledb", "--ignore-encoding", "--ignore-digest", "--durable",
		"--timeout", "60", "--skipfile", skipList(t), "--tags", denied,
	}
	if *only != "" {
		files = []string{*only}
	}
	for _, file := range files {
		args = append(args, "--single", file)
	}
	cmd := exec.Command("tclsh8.6", args...)
	cmd.Dir = folder
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: apt install tcl", err)
	}
	report(t, bufio.NewScanner(out))
	if err := cmd.Wait(); err != nil {
		t.Errorf("the suite ends with %v", err)
	}
}

// serve starts a daemon in this process on an empty folder.
func serve(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	listening, ended := make(chan string, 1), make(chan error, 1)
	config := daemon.Config{
		Data: t.TempDir(), Redis: "127.0.0.1:0", Cache: 16 << 20,
		Listening: func(_ string, addr net.Addr) { listening <- addr.String() },
	}
	go func() { ended <- daemon.Run(ctx, config) }() // ends when stop is called
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the server ends with %v", err)
		}
	})
	select {
	case addr := <-listening:
		return addr
	case err := <-ended:
		ended <- err
		t.Fatalf("the server does not start: %v", err)
	}
	return ""
}

// adapted returns a folder with the suite, made ready for a server that is not Redis.
func adapted(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	from := *source
	if from == "" {
		fetch := exec.Command("apt-get", "source", "-qq", "redis")
		fetch.Dir = folder
		if said, err := fetch.CombinedOutput(); err != nil {
			t.Fatalf("Redis's source cannot be fetched (has apt sources of type deb-src?): %v\n%s", err, said)
		}
		found, err := filepath.Glob(filepath.Join(folder, "redis-*", "tests"))
		if err != nil || len(found) != 1 {
			t.Fatalf("apt-get source brought %q, %v; want one folder with tests", found, err)
		}
		from = filepath.Dir(found[0])
	}
	folder = filepath.Join(folder, "suite")
	if err := os.CopyFS(filepath.Join(folder, "tests"), os.DirFS(filepath.Join(from, "tests"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"redis-cli", "redis-benchmark"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatalf("%v: apt install redis-tools", err)
		}
		if err := os.Symlink(path, filepath.Join(folder, "src", program)); err != nil {
			t.Fatal(err)
		}
	}
	adaptation, err := filepath.Abs("testdata/adapt.tcl")
	if err != nil {
		t.Fatal(err)
	}
	// It comes last, where all that it replaces is defined, and before the suite begins.
	helper := filepath.Join(folder, "tests", "test_helper.tcl")
	text, err := os.ReadFile(helper)
	if err != nil {
		t.Fatal(err)
	}
	const begin = "\nif {$::client} {\n"
	if strings.Count(string(text), begin) != 1 {
		t.Fatalf("%s is not as it was in Redis 7.0: %q is not there once", helper, begin)
	}
	text = []byte(strings.Replace(string(text), begin, "\nsource {"+adaptation+"}\n"+begin, 1))
	if err := os.WriteFile(helper, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// skipList writes a list that the suite can read: ours has reasons, the suite's has none.
func skipList(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/skip.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimSuffix(line, "\n"); name != "" && !strings.HasPrefix(name, "#") {
			names = append(names, name)
		}
	}
	name := filepath.Join(t.TempDir(), "skip")
	if err := os.WriteFile(name, []byte(strings.Join(names, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// report fails the test for each test of the suite that failed, and counts the others.
func report(t *testing.T, out *bufio.Scanner) {
	t.Helper()
	colour := regexp.MustCompile("\x1b\\[[0-9;]*m")
	verdict := regexp.MustCompile(`^\[(ok|err|skip|ignore|exception|TIMEOUT)\]: (.*)`)
	counts := make(map[string]int)
	var failure []string // the lines of the failure that is read
	end := func() {
		if len(failure) > 0 {
			t.Error(strings.Join(failure, "\n"))
		}
		failure = nil
	}
	for out.Scan() {
		line := colour.ReplaceAllString(out.Text(), "")
		if strings.TrimSpace(line) == "The End" {
			break
		}
		found := verdict.FindStringSubmatch(line)
		switch {
		case found != nil:
			end()
			counts[found[1]]++
			if slices.Contains([]string{"err", "exception", "TIMEOUT"}, found[1]) {
				failure = []string{found[2]}
			}
		case len(failure) > 0:
			failure = append(failure, line)
		}
	}
	end()
	for out.Scan() { // a summary of what was said before
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%s: %d", kind, counts[kind])
	}
	if counts["ok"] == 0 {
		t.Error("no test of the suite passed")
	}
}
