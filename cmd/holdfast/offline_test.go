package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

// cli runs a command that needs no server.
func cli(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return command{}.run(ctx, args...)
}

// done runs a command that has to succeed without a word on standard error, and returns what it
// printed.
func done(t *testing.T, args ...string) string {
	t.Helper()
	r := cli(t, args...)
	if r.code != exitOK || r.stderr != "" {
		t.Fatalf("%q: exit code %d, stderr %q", args, r.code, r.stderr)
	}
	return r.stdout
}

// filled makes a folder with packets of all kinds in two queues, and a third one that is empty
// again.
func filled(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	s := serve(t, dir)
	for i, args := range [][]string{
		{"jobs", "plain", "--priority", "7"}, {"jobs", "of a key", "--key", "k"}, {"jobs", "of the empty key", "--key", ""},
		{"jobs", "hidden", "--key", "k", "--priority", "0"}, {"jobs", "\xff\x00bytes", "--key", "\xfe"},
		{"\xffqueue, of \"bytes\"", "", "--key", "x"}, {"jobs", strings.Repeat("large ", 10_000), "--priority", "1"},
		{"jobs", "goes", "--ttl", "65s", "--key", "t"}, {"empty", "gone"},
	} {
		if r := s.run(t, append([]string{"push"}, args...)...); r.code != exitOK {
			t.Fatalf("push %d: %+v", i, r)
		}
	}
	s.must(t, "pop", "empty")
	if code := s.stop(); code != exitOK {
		t.Fatalf("server ended with exit code %d", code)
	}
	return dir
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDumpOfALoadedDumpIsTheSame(t *testing.T) {
	t.Parallel()
	dir, work := filled(t), t.TempDir()
	for _, format := range []string{"jsonl", "msgpack"} {
		first, second, copied := filepath.Join(work, format+"1"), filepath.Join(work, format+"2"), filepath.Join(work, format)
		if out := done(t, "dump", dir, "--format", format, "-o", first); out != "" {
			t.Errorf("dump to a file printed %q", out)
		}
		if out := done(t, "dump", dir, "--format", format); out != string(readFile(t, first)) {
			t.Error("a second dump, to standard output, is another one")
		}
		if out := done(t, "load", first, copied); !strings.HasPrefix(out, "8 packets of 3 queues loaded in ") {
			t.Errorf("load printed %q", out)
		}
		done(t, "dump", copied, "--format", format, "-o", second)
		if !bytes.Equal(readFile(t, first), readFile(t, second)) {
			t.Errorf("%s: the dump of the copy is not that of the folder", format)
		}
		if out := done(t, "verify", copied); !strings.Contains(out, "sound: 8 packets") {
			t.Errorf("verify of the copy printed\n%s", out)
		}
	}
	// The packets leave the copy as they would leave the original.
	var popped [2]string
	for i, from := range []string{dir, filepath.Join(work, "jsonl")} {
		s := serve(t, from)
		for range 6 {
			popped[i] += s.run(t, "pop", "jobs", "--group", "--json").stdout
		}
		s.stop()
	}
	if popped[0] != popped[1] || strings.Count(popped[0], "\n") != 7 {
		t.Errorf("popped from the folder\n%s\nfrom the copy\n%s", popped[0], popped[1])
	}
}

func TestDumpHasTheFormThatIsAskedFor(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	for name, c := range map[string]struct {
		args []string
		want string // a part
		not  string
	}{
		"jsonl":               {nil, `{"type":"end","packets":8,"queues":3,`, ""},
		"msgpack":             {[]string{"--format", "msgpack"}, "\xa4type\xa3end", `{"`},
		"base64":              {[]string{"--payload", "base64"}, `"payload":{"base64":"cGxhaW4="}`, "plain"},
		"no payload":          {[]string{"--payload", "none"}, `"payload":"none"`, "plain"},
		"one queue":           {[]string{"--queue", "j?bs"}, `"packets":7,"queues":1,`, ""},
		"two queues":          {[]string{"--queue", "jobs", "--queue", "\xff*"}, `"packets":8,"queues":2,`, ""},
		"no queue":            {[]string{"--queue", "nothing"}, `"packets":0,"queues":0,`, ""},
		"at most two packets": {[]string{"--limit", "2"}, `"packets":2,"queues":1,`, ""},
		"a name with commas":  {[]string{"--queue", "\xffqueue, of \"bytes\""}, `"packets":1,"queues":1,`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := done(t, append([]string{"dump", dir}, c.args...)...)
			if !strings.Contains(out, c.want) || c.not != "" && strings.Contains(out, c.not) {
				t.Errorf("dumped\n%.2000s\nwant %q and no %q", out, c.want, c.not)
			}
		})
	}
}

func TestFoldersThatCannotBeWorkedOnAreRefused(t *testing.T) {
	t.Parallel()
	dump := filepath.Join(t.TempDir(), "dump")
	done(t, "dump", filled(t), "-o", dump)
	inUse := filepath.Join(t.TempDir(), "data")
	serve(t, inUse)
	holder := "process " + strconv.Itoa(os.Getpid())
	write := func(name, text string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	const all = "dump load verify compact"
	for name, c := range map[string]struct {
		dir     string
		prepare func(dir string) error // makes dir what it should not be
		which   string
		want    string
	}{
		"in use":             {inUse, nil, all, holder},
		"in use, for a dump": {inUse, nil, "dump", `"holdfast backup" copies a running server`},
		"of a newer format":  {"", write("format", "99\n"), all, "newer"},
		"of something else":  {"", write("letter.txt", ""), all, "not a holdfast data folder"},
		"a file":             {"", func(dir string) error { return errors.Join(os.Remove(dir), write("", "")(dir)) }, all, "data"},
		"nothing":            {"", os.Remove, "dump verify compact", "data folder"},
		"packets already":    {filled(t), nil, "load", "--to-server adds a dump"},
	} {
		for command := range strings.FieldsSeq(c.which) {
			t.Run(command+" "+name, func(t *testing.T) {
				dir := c.dir
				if dir == "" {
					dir = filepath.Join(t.TempDir(), "data")
					if err := errors.Join(os.Mkdir(dir, 0o700), c.prepare(dir)); err != nil {
						t.Fatal(err)
					}
				}
				args, code := []string{command, dir}, exitFailed
				switch command {
				case "load":
					args = []string{command, dump, dir}
				case "verify":
					code = exitNotChecked
					if name == "a file" { // it takes a backup
						code = exitUnsound
					}
				}
				oneErrorLine(t, cli(t, args...), code, c.want)
			})
		}
	}
}

func TestLoadThatWasCutShortBeginsAgain(t *testing.T) {
	dir, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "dump")
	const packets, half = 100, 60
	var dump bytes.Buffer
	dump.WriteString(`{"type":"holdfast","version":1,"next_sequence":"9223372036854775908","low_sequence":"9223372036854775807","next_queue":2}` + "\n")
	dump.WriteString(`{"type":"queue","id":1,"queue":"q"}` + "\n")
	for i := range packets {
		if i == half { // a part that is not a dump yet
			if err := os.WriteFile(file, dump.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		seq := uint64(1)<<63 + uint64(i)
		fmt.Fprintf(&dump, `{"type":"packet","queue":"q","id":"1/1/%d","priority":1,"sequence":"%d","payload":"%s","state":"ready"}`+"\n",
			seq, seq, strings.Repeat("x", 150_000)) // the first part has two batches of 4 MiB
	}
	fmt.Fprintf(&dump, `{"type":"end","packets":%d,"queues":1}`+"\n", packets)

	oneErrorLine(t, cli(t, "load", file, dir), exitFailed, "nothing was stored")
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a load cut short left a folder: %v", err)
	}
	if err := os.WriteFile(file, dump.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var report loadJSON
	if err := json.Unmarshal([]byte(done(t, "load", file, dir, "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if report.Packets != packets || report.Queues != 1 {
		t.Errorf("report %+v, want %d packets", report, packets)
	}
	if out := done(t, "verify", dir); !strings.Contains(out, "sound: 100 packets") {
		t.Errorf("verify printed\n%s", out)
	}
}

func TestADumpIsLoadedIntoANewFolderOnly(t *testing.T) {
	t.Parallel()
	file, fresh := filepath.Join(t.TempDir(), "dump"), filepath.Join(t.TempDir(), "new")
	done(t, "dump", filled(t), "--queue", "jobs", "-o", file)
	done(t, "load", file, fresh)
	if r := (command{}).run(t.Context(), "load", file, fresh); r.code == exitOK || !strings.Contains(r.stderr, "--to-server adds a dump") {
		t.Errorf("the same load again: %+v, want that the folder is not empty", r)
	}
	piped := filepath.Join(t.TempDir(), "piped")
	if r := (command{stdin: string(readFile(t, file))}).run(t.Context(), "load", "-", piped); r.code != exitOK {
		t.Fatalf("load from standard input: %+v", r)
	}
	if a, b := done(t, "dump", fresh), done(t, "dump", piped); a != b || strings.Count(a, "\n") < 7 {
		t.Errorf("the folders hold\n%s\n%s", a, b)
	}
}

func TestCompactPrintsSizesAndKeepsEverything(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	before := done(t, "dump", dir)
	var report compactJSON
	if err := json.Unmarshal([]byte(done(t, "compact", dir, "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if report.Findings == nil || len(report.Findings) > 0 {
		t.Errorf("findings %q, want none in a list", report.Findings)
	}
	if report.Packets != 8 || report.After <= 0 || report.Before < report.After {
		t.Errorf("report %+v, want 8 packets and a folder that is not larger", report)
	}
	out := done(t, "compact", dir)
	if !regexp.MustCompile(`^[0-9.]+ [KM]iB before, [0-9.]+ [KM]iB after: 8 packets kept, 0 expired, in .*s\n$`).MatchString(out) {
		t.Errorf("printed %q, want the sizes and the packets", out)
	}
	if after := done(t, "dump", dir); after != before {
		t.Error("the folder holds something else than before")
	}
}

// damage changes some bytes of the large payload in a table.
func damage(t *testing.T, dir string, bytesChanged int) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tables {
		b := readFile(t, name)
		if at := bytes.Index(b, []byte("large large")); at >= 0 {
			for i := range bytesChanged {
				b[at+20_000+100*i] ^= 1
			}
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("the payload is in no table")
}

// verdictJSON is the beginning of the JSON form of a report. The queues follow, one queueJSON each,
// and the seconds that it took.
type verdictJSON struct {
	Sound    bool          `json:"sound"`
	Findings []findingJSON `json:"findings"`
	More     int           `json:"more"` // findings that are not listed
	Packets  int64         `json:"packets"`
	Expired  int64         `json:"expired"`
	Bytes    int64         `json:"bytes"` // of keys and payloads
	Keys     int64         `json:"keys"`  // strings and hashes
	LeftOver int64         `json:"left_over"`
}

type findingJSON struct {
	Kind string `json:"kind"`
	Key  string `json:"key"`
	What string `json:"what"`
}

// queueJSON counts the packets of a queue.
type queueJSON struct {
	ID           uint32          `json:"id"`
	Name         jsonbytes.Bytes `json:"queue"`
	Ready        int64           `json:"ready"`
	Delayed      int64           `json:"delayed"`
	Unselectable int64           `json:"unselectable"`
	Claimed      int64           `json:"claimed"`
	Dead         int64           `json:"dead"`
	Done         int64           `json:"done"`
	Expired      int64           `json:"expired"`
	Bytes        int64           `json:"bytes"`
}

// verifyJSON is the JSON form of a report.
type verifyJSON struct {
	verdictJSON
	Queues  []queueJSON `json:"queues"`
	Seconds float64     `json:"seconds"`
}

func TestVerifyNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	if out := done(t, "verify", dir); !strings.Contains(out, "\njobs ") || !strings.Contains(out, `"\xffqueue, of \"bytes\""`) {
		t.Errorf("printed\n%s\nwant the queues", out)
	}
	damage(t, dir, 1)
	r := cli(t, "verify", dir)
	if r.code != exitUnsound || !strings.HasPrefix(r.stdout, "table: ") || !strings.Contains(r.stdout, "sequence 9223372036854775815 in queue 1") ||
		!strings.Contains(r.stderr, "the folder has 3 findings") {
		t.Errorf("%+v, want findings that name the table, the block and the packet", r)
	}
	r = cli(t, "verify", dir, "--json")
	var report verifyJSON
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatalf("%v in %q", err, r.stdout)
	}
	if r.code != exitUnsound || report.Sound || len(report.Findings) == 0 || len(report.Queues) != 3 || report.Queues[1].Name[0] != 0xff {
		t.Errorf("%d %+v, want findings and queues", r.code, report)
	}
}

func TestSalvageWritesWhatCanBeRead(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	damage(t, dir, 3)
	file := filepath.Join(t.TempDir(), "dump")
	oneErrorLine(t, cli(t, "dump", dir, "-o", file), exitFailed, "dump --salvage")
	if _, err := os.Stat(file); err == nil {
		t.Error("there is a dump")
	}
	r := cli(t, "dump", dir, "--salvage", "-o", file)
	if r.code != exitOK || !strings.Contains(r.stderr, "1/1/") {
		t.Errorf("salvage: %+v, want a line that names the packet", r)
	}
	copied := filepath.Join(t.TempDir(), "data")
	done(t, "load", file, copied)
	if out := done(t, "verify", copied); !strings.Contains(out, "sound: ") {
		t.Errorf("verify of what was salvaged printed\n%s", out)
	}
}

func TestInterruptedCommandsSayWhatStateThingsAreIn(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	file := filepath.Join(t.TempDir(), "dump")
	done(t, "dump", dir, "-o", file)
	whole := readFile(t, file)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"dump":    {[]string{"dump", dir, "-o", file}, exitFailed, "interrupted; nothing was written to " + file},
		"verify":  {[]string{"verify", dir}, exitNotChecked, "interrupted"},
		"compact": {[]string{"compact", dir}, exitFailed, "interrupted; the folder is sound"},
		"load":    {[]string{"load", file, filepath.Join(t.TempDir(), "new")}, exitFailed, "interrupted; nothing was stored"},
		"backup":  {[]string{"backup", "--to", file, "--admin", nobody}, exitFailed, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			oneErrorLine(t, command{}.run(ctx, c.args...), c.code, c.want)
		})
	}
	if !bytes.Equal(readFile(t, file), whole) {
		t.Error("the dump that was there is not what it was")
	}
	if after := done(t, "dump", dir); after != string(whole) {
		t.Error("the folder is not what it was")
	}
}

// loadJSON is the JSON form of a report.
type loadJSON struct {
	Packets int64   `json:"packets"`
	Queues  int64   `json:"queues"`
	Expired int64   `json:"expired"` // left out
	Keys    int64   `json:"keys"`    // strings and hashes
	Taken   int64   `json:"taken"`   // strings and hashes left out because of their names
	Seconds float64 `json:"seconds"`
}

// compactJSON is the JSON form of a report.
type compactJSON struct {
	Packets int64   `json:"packets"`
	Expired int64   `json:"expired"` // deleted
	Keys    int64   `json:"keys"`    // strings and hashes
	Before  int64   `json:"before"`  // bytes on disk
	After   int64   `json:"after"`
	Seconds float64 `json:"seconds"`

	Findings []string `json:"findings"` // what --accept-loss accepted
}
