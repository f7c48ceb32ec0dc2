package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
	"github.com/holdfast-queue/holdfast/recovery/verify"
	"github.com/holdfast-queue/holdfast/storage"
)

// anyReport is a report with something of everything.
func anyReport() *verify.Report {
	return &verify.Report{
		Found: storage.Found{Findings: []storage.Finding{{Kind: "lost", Key: "packets", What: "1 packet is <lost>"}}, More: 1},
		Queues: []verify.QueueCount{
			{ID: 1, Name: []byte("jobs"), Counts: verify.Counts{0, 1234567, 2, 7, 8, 9}, Bytes: 12},
			{ID: 3, Name: []byte("\xff of \"bytes\""), Counts: verify.Counts{3}, Expired: 4},
		},
		Packets: 1234572, Expired: 4, Bytes: 12, Keys: 5, LeftOver: 6, Took: 1500 * time.Millisecond,
	}
}

// printed is what print writes of a report.
func printed(t *testing.T, print func(w *bufio.Writer)) string {
	t.Helper()
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	print(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestVerdictIsATable(t *testing.T) {
	want := `lost: packets: 1 packet is <lost>
1 more finding not listed
       ready     delayed     claimed        dead        done  priority 0     expired           bytes  queue
     1234567           2           7           8           9           0           0              12  "jobs"
           0           0           0           0           0           3           4               0  "\xff of \"bytes\""
not sound: 1234572 packets of 12 bytes in 2 queues, strings and hashes: 5, expired: 4, 1.5s
`
	if got := printed(t, func(w *bufio.Writer) { printVerdict(w, anyReport()) }); got != want {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
	empty := &verify.Report{}
	if got, want := printed(t, func(w *bufio.Writer) { printVerdict(w, empty) }), "sound: 0 packets of 0 bytes in 0 queues, expired: 0, 0s\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

func TestVerdictIsOneJSONObject(t *testing.T) {
	for _, c := range []struct {
		report *verify.Report
		want   verifyJSON
	}{
		{&verify.Report{}, verifyJSON{verdictJSON{Sound: true, Findings: []findingJSON{}}, []queueJSON{}, 0}},
		{anyReport(), verifyJSON{
			verdictJSON{false, []findingJSON{{"lost", "packets", "1 packet is <lost>"}}, 1, 1234572, 4, 12, 5, 6},
			[]queueJSON{{ID: 1, Name: jsonbytes.Bytes("jobs"), Ready: 1234567, Delayed: 2, Claimed: 7, Dead: 8, Done: 9, Bytes: 12}, {ID: 3, Name: jsonbytes.Bytes("\xff of \"bytes\""), Unselectable: 3, Expired: 4}},
			1.5,
		}},
	} {
		text := printed(t, func(w *bufio.Writer) { printVerdictJSON(w, c.report) })
		var got verifyJSON
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&got); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v, %v of %s; want %+v", got, err, text, c.want)
		}
		if rest := text[decoder.InputOffset():]; rest != "\n" {
			t.Errorf("behind the object is %q", rest)
		}
	}
}

func TestExitCodeOfVerifyTellsWhatWasNotRead(t *testing.T) {
	sound, damaged := filled(t), filled(t)
	damage(t, damaged, 1)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	read, gone, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	_ = read.Close()
	for name, c := range map[string]struct {
		dir    string
		stdout *os.File
		code   int
		stderr string
	}{
		"sound, read no further":   {sound, gone, exitOK, ""},
		"damaged, read no further": {damaged, gone, exitUnsound, "holdfast: verify: the folder has 3 findings\n"},
		"sound, not written":       {sound, full, exitNotChecked, "holdfast: verify: no result: write to standard output: no space left on device\n"},
		"damaged, not written":     {damaged, full, exitNotChecked, "holdfast: verify: no result: write to standard output: no space left on device\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			p := program{Process: terminal.Process{Stdin: strings.NewReader(""), Stdout: c.stdout, Stderr: &stderr, Env: command{}.lookup}}
			if code := p.run(t.Context(), []string{"verify", c.dir}); code != c.code || stderr.String() != c.stderr {
				t.Errorf("exit code %d, stderr %q; want %d, %q", code, stderr.String(), c.code, c.stderr)
			}
		})
	}
}

func TestCommandsSayWhatTheyCouldNotPrint(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "x")
	read, gone, err := os.Pipe()
	if err := errors.Join(err, read.Close()); err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"pop":     {[]string{"pop", "q"}, "holdfast: print 1 packet, gone from the queue: nobody reads standard output any more\n"},
		"version": {[]string{"version"}, ""},
		"compact": {[]string{"compact", filled(t)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			env := command{env: map[string]string{"HOLDFAST_REDIS": s.addrs["redis"]}}
			p := program{Process: terminal.Process{Stdin: strings.NewReader(""), Stdout: gone, Stderr: &stderr, Env: env.lookup}}
			if code := p.run(t.Context(), c.args); code != exitFailed || stderr.String() != c.want {
				t.Errorf("exit code %d, stderr %q; want 1, %q", code, stderr.String(), c.want)
			}
		})
	}
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
