package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

func TestBackupHoldsWhatTheServerHolds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, filepath.Join(dir, "data"), "--admin", "127.0.0.1:0")
	s.must(t, "push", "jobs.a", "1", "--key", "k")
	s.must(t, "push", "jobs.b", "2", "--key", "k")
	s.must(t, "push", "\xff[*", "3", "--key", "k")
	for name, c := range map[string]struct {
		args []string
		want int // packets
	}{
		"all":               {nil, 3},
		"two by a pattern":  {[]string{"--queue", "jobs.*"}, 2},
		"two by two":        {[]string{"--queue", "jobs.a", "--queue", "?\\[\\*"}, 2},
		"a name of bytes":   {[]string{"--queue", "\xff*"}, 1},
		"a name with comma": {[]string{"--queue", "jobs.a,jobs.b"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "backup")
			args := append([]string{"backup", "--format", "jsonl"}, c.args...)
			if out, want := s.must(t, append(args, "--to", file)...), terminal.Plural(c.want, "packet")+" of "; !strings.HasPrefix(out, want) || !strings.HasSuffix(out, " are in "+file+"\n") {
				t.Errorf("printed %q, want %q and the file", out, want)
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(string(b), `{"type":"packet"`); got != c.want {
				t.Errorf("%d packets, want %d", got, c.want)
			}
			out := s.must(t, append(args, "--to", "-")...)
			s.must(t, append(args, "--to", file+"2")...) // the counters of a queue may be saved meanwhile
			if out != string(b) && out != string(readFile(t, file+"2")) {
				t.Errorf("standard output got %d bytes, the file %d", len(out), len(b))
			}
		})
	}
}

func TestBackupOfABusyServerIsOneMoment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, filepath.Join(dir, "data"), "--admin", "127.0.0.1:0")
	done := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() { // ends with done; moves one packet on and on, so that there is always one, or none between
		for {
			select {
			case <-done:
				return
			default:
				s.run(t, "push", "q", "x", "--key", "k")
				s.run(t, "pop", "q")
			}
		}
	})
	for range 20 {
		out := s.must(t, "backup", "--to", "-", "--format", "jsonl")
		if n := strings.Count(out, `{"type":"packet"`); n > 1 {
			t.Errorf("%d packets in a backup, there is never more than one:\n%s", n, out)
		}
	}
	close(done)
	busy.Wait()
}

func TestBackupsUnderLoadAreSoundFolders(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	s := serve(t, filepath.Join(work, "data"), "--admin", "127.0.0.1:0", "--barbershop", "127.0.0.1:0")
	const standing = 2000
	s.must(t, "bench", "push", "--count", fmt.Sprint(standing), "--keep")
	if r := s.runWith(t, strings.Repeat("1 1\n", standing), "barbershop", "import", "-"); r.code != exitOK {
		t.Fatalf("import: %+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	ended := make(chan result, 2)
	for _, args := range [][]string{ // both end with ctx
		{"bench", "mixed", "--all", "--pinpriq", s.addr, "--depth", "8"},
		{"bench", "push", "--all", "--size", "20000", "--pinpriq", s.addr, "--depth", "1", "--connections", "2"},
	} {
		busy.Go(func() { ended <- command{}.run(ctx, args...) })
	}
	for i, caught := 0, 0; caught < 2; i++ { // two copies at least were made while packets came and went
		if len(ended) > 0 {
			t.Fatalf("the load has ended: %+v", <-ended)
		}
		file, copied := filepath.Join(work, fmt.Sprint("backup", i)), filepath.Join(work, fmt.Sprint("copy", i))
		s.must(t, "backup", "--to", file)
		done(t, "load", file, copied, "--quiet")
		out := done(t, "verify", copied, "--json", "--quiet")
		var report verifyJSON
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		whole := 0 // queues that nobody works on: all of their packets are in every copy
		for _, q := range report.Queues {
			if q.Ready == standing || string(q.Name) == "barbershop" && q.Ready == 1 {
				whole++
			}
		}
		if !report.Sound || whole < 2 {
			t.Fatalf("copy %d: %+v, want a sound one with both queues that rest", i, report)
		}
		if report.Packets > standing+1 {
			caught++
		}
	}
	cancel()
	busy.Wait()
}

// adminOf is an operator's port that answers with what body writes.
func adminOf(t *testing.T, body http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: body, ReadHeaderTimeout: patience}
	go func() { _ = server.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return l.Addr().String()
}

func TestBackupThatIsNotWholeLeavesTheFileAsItWas(t *testing.T) {
	const begins = `{"type":"holdfast","version":2,"next_sequence":"9223372036854775808","low_sequence":"9223372036854775807","next_queue":1}` + "\n"
	for name, c := range map[string]struct {
		addr string
		want string
	}{
		"no server": {nobody, "no server answers at"},
		"refused": {adminOf(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "another backup is under way\n")
		}), "another backup is under way"},
		"aborted": {adminOf(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, begins)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}), "cut its answer short"},
		"without its end": {adminOf(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, begins)
		}), "has no end record"},
		"empty": {adminOf(t, func(http.ResponseWriter, *http.Request) {}), "the dump is empty"},
		"with another hash": {adminOf(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, begins+`{"type":"end","packets":0,"queues":0,"hash":"0123456789abcdef"}`+"\n")
		}), "the dump was changed"},
		"stalled": {adminOf(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, begins)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}), "sent nothing for 200ms"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "backup")
			if err := os.WriteFile(file, []byte("older"), 0o600); err != nil {
				t.Fatal(err)
			}
			timeout := patience.String()
			if name == "stalled" {
				timeout = "200ms"
			}
			r := command{}.run(t.Context(), "backup", "--to", file, "--admin", c.addr, "--timeout", timeout)
			oneErrorLine(t, r, exitFailed, c.want)
			if b, err := os.ReadFile(file); err != nil || string(b) != "older" {
				t.Errorf("the file holds %q, %v", b, err)
			}
			if names, err := os.ReadDir(filepath.Dir(file)); err != nil || len(names) != 1 {
				t.Errorf("the folder holds %v, %v; want the file only", names, err)
			}
		})
	}
}

func TestOutputThatCannotBeWrittenIsNotBlamedOnTheServer(t *testing.T) {
	t.Parallel()
	var snapshot strings.Builder // more than the buffer of an output holds, as the packets of the bench
	for item := range 100_000 {
		fmt.Fprintf(&snapshot, "%d 1\n", item)
	}
	for name, c := range map[string]struct {
		stdin string
		fill  []string
		args  []string
	}{
		"backup": {"", []string{"bench", "push", "--count", "100", "--size", "20000", "--keep"}, []string{"backup", "--to", "/dev/full"}},
		"export": {snapshot.String(), []string{"barbershop", "import", "-"}, []string{"barbershop", "export", "/dev/full"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0", "--barbershop", "127.0.0.1:0")
			if r := s.runWith(t, c.stdin, c.fill...); r.code != exitOK {
				t.Fatalf("%+v", r)
			}
			oneErrorLine(t, s.run(t, c.args...), exitFailed, name+": write /dev/full: no space left on device; nothing was written")
		})
	}
}

func TestInterruptedTransfersLeaveTheFileAsItWas(t *testing.T) {
	for name, args := range map[string][]string{
		"backup": {"backup", "--to"},
		"export": {"barbershop", "export"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			addr := adminOf(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, `{"type":"holdfast",`)
				w.(http.Flusher).Flush()
				cancel()
				<-r.Context().Done()
			})
			file := filepath.Join(t.TempDir(), "file")
			r := command{}.run(ctx, append(args, file, "--admin", addr)...)
			oneErrorLine(t, r, exitFailed, "interrupted")
			if names, err := os.ReadDir(filepath.Dir(file)); err != nil || len(names) > 0 {
				t.Errorf("the folder holds %v, %v; want nothing", names, err)
			}
		})
	}
}
