package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// mover pushes rising numbers to a list of its own and takes them again, the oldest first. So a
// list always holds the numbers from one up to another.
type mover struct {
	list                             string
	pushed, taken, answered, emptied atomic.Int64 // what was sent, and what of it has a reply
}

// run goes on until stop is closed.
func (m *mover) run(t *testing.T, address string, stop <-chan struct{}) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	replies := bufio.NewReader(conn)
	for r := rand.New(rand.NewPCG(1, uint64(len(m.list)))); ; {
		select {
		case <-stop:
			return
		default:
		}
		if r.IntN(3) > 0 {
			n := m.pushed.Add(1)
			padding := strings.Repeat(" x", []int{0, 100, 5000, 40_000}[r.IntN(4)])
			_, err = io.WriteString(conn, redisRequest("RPUSH", m.list, strconv.FormatInt(n, 10)+padding))
			if line, rerr := replies.ReadString('\n'); err != nil || rerr != nil || line[0] != ':' {
				t.Errorf("%q, %v, %v", line, err, rerr)
				return
			}
			m.answered.Store(n)
		} else if m.taken.Load() < m.pushed.Load() {
			n := m.taken.Add(1)
			_, err = io.WriteString(conn, redisRequest("LPOP", m.list))
			line, rerr := replies.ReadString('\n')
			size, serr := strconv.Atoi(strings.Trim(line, "$\r\n"))
			if err := errors.Join(err, rerr, serr); err != nil {
				t.Errorf("%q: %v", line, err)
				return
			}
			if _, err := replies.Discard(size + 2); err != nil {
				t.Error(err)
				return
			}
			m.emptied.Store(n)
		}
	}
}

func TestARestoredFolderHoldsWhatWasAcknowledgedBeforeItsBackup(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	s := serve(t, filepath.Join(work, "data"), "--admin", "127.0.0.1:0")
	stop := make(chan struct{})
	var busy sync.WaitGroup
	movers := make([]mover, 4)
	for i := range movers {
		movers[i].list = "list" + strings.Repeat("+", i)
		busy.Go(func() { movers[i].run(t, s.addrs["redis"], stop) }) // ends with stop
	}
	for i := range 6 {
		file, copied := filepath.Join(work, fmt.Sprint("backup", i)), filepath.Join(work, fmt.Sprint("copy", i))
		var answered, emptied [4]int64
		for i := range movers {
			answered[i], emptied[i] = movers[i].answered.Load(), movers[i].emptied.Load()
		}
		s.must(t, "backup", "--files", "--to", file)
		var pushed, taken [4]int64
		for i := range movers {
			pushed[i], taken[i] = movers[i].pushed.Load(), movers[i].taken.Load()
		}
		done(t, "restore", file, copied, "--quiet")
		if out := done(t, "verify", copied, "--quiet"); !strings.Contains("\n"+out, "\nsound: ") {
			t.Fatalf("copy %d: %s", i, out)
		}
		numbers := map[string][]int64{}
		for line := range strings.Lines(done(t, "dump", copied, "--quiet")) {
			var p struct{ Type, Queue, Payload string }
			if err := json.Unmarshal([]byte(line), &p); err == nil && p.Type == "packet" {
				text, _, _ := strings.Cut(p.Payload, " ")
				n, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					t.Fatalf("%.100s: %v", line, err)
				}
				numbers[p.Queue] = append(numbers[p.Queue], n)
			}
		}
		for i := range movers {
			all := numbers[movers[i].list]
			slices.Sort(all)
			if len(all) == 0 && answered[i] > taken[i] {
				t.Fatalf("copy %d has nothing of %d to %d", i, taken[i]+1, answered[i])
			}
			for at, n := range all {
				if n != all[0]+int64(at) {
					t.Fatalf("copy %d: %d stands behind %d", i, n, all[at-1])
				}
			}
			if len(all) > 0 && (all[0] <= emptied[i] || all[0] > taken[i]+1 || all[len(all)-1] < answered[i] || all[len(all)-1] > pushed[i]) {
				t.Fatalf("copy %d has %d to %d; want from %d to %d on, up to %d to %d", i, all[0], all[len(all)-1],
					emptied[i]+1, taken[i]+1, answered[i], pushed[i])
			}
		}
	}
	close(stop)
	busy.Wait()
}

func TestBackupOfFilesIsRestored(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	s := serve(t, filepath.Join(work, "data"), "--admin", "127.0.0.1:0")
	s.must(t, "push", "jobs", "one", "--key", "k")
	s.must(t, "push", "jobs", "two")
	file, dumped, backups := filepath.Join(work, "backup"), filepath.Join(work, "dump"), filepath.Join(work, "backups")
	if out := s.must(t, "backup", "--files", "--to", file); !strings.Contains(out, "KiB of ") || !strings.HasSuffix(out, " files are in "+file+"\n") {
		t.Errorf("printed %q, want how much is in the file", out)
	}
	if err := os.Mkdir(backups, 0o700); err != nil {
		t.Fatal(err)
	}
	if out := s.must(t, "backup", "--files", "--to", backups, "--keep", "1"); !strings.HasSuffix(out, ".tar\n") {
		t.Errorf("printed %q, want the name of a tar", out)
	}
	var made struct{ File, Bytes, Files any }
	if err := json.Unmarshal([]byte(s.must(t, "backup", "--files", "--to", file+"2", "--json")), &made); err != nil || made.File != file+"2" || made.Files == 0. {
		t.Errorf("printed %+v, %v", made, err)
	}
	copied := filepath.Join(work, "copy")
	out := done(t, "restore", file, copied)
	if !strings.Contains(out, "holdfast serve --data "+copied) {
		t.Errorf("printed %q, want what to do next", out)
	}
	piped := filepath.Join(work, "piped")
	r := command{stdin: s.must(t, "backup", "--files", "--to", "-")}.run(t.Context(), "restore", "-", piped, "--json")
	var restored struct{ Bytes, Files, Packets, Seconds float64 }
	if err := json.Unmarshal([]byte(r.stdout), &restored); err != nil || restored.Packets != 2 || restored.Files < 4 {
		t.Errorf("printed %+v, %v, stderr %q", restored, err, r.stderr)
	}
	for _, dir := range []string{copied, piped} {
		if got := serve(t, dir).must(t, "pop", "jobs"); got == "" {
			t.Errorf("%s has no packets", dir)
		}
	}
	s.must(t, "backup", "--to", dumped)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a folder that has something": {[]string{"restore", file, backups}, exitFailed, "is not empty"},
		"a dump":                      {[]string{"restore", dumped, filepath.Join(work, "new")}, exitFailed, `is for "holdfast load"`},
		"load of files":               {[]string{"load", file, filepath.Join(work, "new")}, exitFailed, `"holdfast restore" makes a data folder of it`},
		"files of one queue":          {[]string{"backup", "--files", "--to", file, "--queue", "jobs"}, exitUsage, "--files: it copies everything"},
		"files as JSON":               {[]string{"backup", "--files", "--to", file, "--format", "jsonl"}, exitUsage, "--files: it copies everything"},
		"nothing to read":             {[]string{"restore", filepath.Join(work, "none"), filepath.Join(work, "new")}, exitFailed, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.run(t, c.args...)
			if r.code != c.code || !strings.Contains(r.stderr, c.want) {
				t.Errorf("exit code %d, stderr %q; want %d and %q", r.code, r.stderr, c.code, c.want)
			}
			if _, err := os.Stat(filepath.Join(work, "new")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder is there: %v", err)
			}
		})
	}
}

func TestABackupOfFilesIsVerifiedWithoutAServer(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	s := serve(t, filepath.Join(work, "data"), "--admin", "127.0.0.1:0")
	s.must(t, "push", "jobs", "one")
	whole := s.must(t, "backup", "--files", "--to", "-")
	s.stop()
	changed := strings.Replace(whole, "one", "two", 1)
	for name, c := range map[string]struct {
		backup string
		args   []string
		code   int
		want   string
	}{
		"whole":         {whole, nil, exitOK, "packets_without_expiry: 1"},
		"whole as JSON": {whole, []string{"--json"}, exitOK, `{"sound":true,"file":"-",`},
		"changed":       {changed, nil, exitUnsound, "it was altered"},
		"cut":           {whole[:len(whole)-3000], nil, exitUnsound, "is cut short"},
		"something":     {"something", nil, exitUnsound, "is no whole backup"},
	} {
		t.Run(name, func(t *testing.T) {
			r := command{stdin: c.backup}.run(t.Context(), append([]string{"verify", "-"}, c.args...)...)
			if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.want) {
				t.Errorf("got %+v, want exit code %d and %q", r, c.code, c.want)
			}
		})
	}
}

func TestBackupOfFilesThatIsCutLeavesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	s.must(t, "push", "jobs", "one")
	whole := s.must(t, "backup", "--files", "--to", "-")
	for name, body := range map[string]http.HandlerFunc{
		"aborted": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, whole[:len(whole)/2])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"aborted at its end": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, whole)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"cut":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, whole[:len(whole)/2]) },
		"empty": func(http.ResponseWriter, *http.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "backup")
			r := command{}.run(t.Context(), "backup", "--files", "--to", file, "--admin", adminOf(t, body))
			oneErrorLine(t, r, exitFailed, "nothing was written to")
			if names, err := os.ReadDir(filepath.Dir(file)); err != nil || len(names) > 0 {
				t.Errorf("the folder holds %v, %v; want nothing", names, err)
			}
		})
	}
}

func TestSystemAServerThatIsKilledDuringABackupOfFilesLeavesNothingOfIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	cmd, s := process(t, "--data", dir, "--admin", "127.0.0.1:0")
	s.must(t, "bench", "push", "--count", "500", "--size", "50000", "--keep")
	answer, err := http.Get("http://" + s.addrs["admin"] + "/backup?format=tar")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.ReadFull(answer.Body, make([]byte, 100_000)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.stop()
	if n, err := io.Copy(io.Discard, answer.Body); err == nil {
		t.Errorf("the backup ended well behind %d bytes", n)
	}
	if s := serve(t, dir); s.recovered != 500 {
		t.Errorf("%d packets, want 500", s.recovered)
	}
	names, err := fs.Glob(os.DirFS(dir), "*")
	if want := []string{"anchor", "build", "db", "format", "journal", "lock"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("the folder holds %v, %v; want %v", names, err, want)
	}
}
