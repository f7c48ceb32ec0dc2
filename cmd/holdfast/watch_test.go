package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// sees closes a channel once a text was read, and reads on until the end.
func sees(r io.Reader, want string) <-chan struct{} {
	found := make(chan struct{})
	go func() { // ends with r
		var seen []byte
		for part := make([]byte, 64); !bytes.Contains(seen, []byte(want)); {
			n, err := r.Read(part)
			if err != nil {
				return
			}
			seen = append(seen, part[:n]...)
		}
		close(found)
		_, _ = io.Copy(io.Discard, r)
	}()
	return found
}

func awaited(t *testing.T, seen <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-seen:
	case <-time.After(patience):
		t.Fatalf("no %s within %v", what, patience)
	}
}

func TestStatsAreWatchedAlsoWhenTheServerComesBack(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir)
	s.must(t, "push", "q", "x")
	s.must(t, "push", "q", "x")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdout, figures := io.Pipe()
	stderr, complaints := io.Pipe()
	copied, copies := io.Pipe()
	first, back := sees(io.TeeReader(stdout, copies), "(0.0/s)"), sees(copied, "pushed      3")
	away := sees(stderr, "no server answers")
	ended := make(chan int, 1)
	go func() { // ends with ctx
		p := program{Process: terminal.Process{Stdin: strings.NewReader(""), Stdout: figures, Stderr: complaints, Env: command{env: map[string]string{"HOLDFAST_REDIS": s.addrs["redis"]}}.lookup}}
		ended <- p.run(ctx, []string{"stats", "q", "--watch", "--every", "1ms"})
	}()
	awaited(t, first, "rates")
	s.stop()
	awaited(t, away, "error")
	serve(t, dir, "--redis", s.addrs["redis"]).must(t, "push", "q", "x")
	awaited(t, back, "figures of the server that is back")
	cancel()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestASignalEndsWatchingWell(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "x")
	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sent.String(), func(t *testing.T) {
			if signal.Ignored(sent) {
				t.Skip("skipped: who runs the tests ignores it, and so does what they start")
			}
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, exe, "stats", "q", "--watch", "--every", "1h")
			cmd.Env = append(os.Environ(), asProgram+"=1", "HOLDFAST_REDIS="+s.addrs["redis"])
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_, _ = stdout.Read(make([]byte, 1)) // the first figures are there
			if err := cmd.Process.Signal(sent); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exitOK {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

func TestRatesAreThoseOfCounters(t *testing.T) {
	before := &round{of: map[string]client.Stats{"q": {Ready: 1, Pushed: 10}}, took: 2 * time.Second}
	var out strings.Builder
	if err := printStats(&out, []queueStats{{"q", client.Stats{Ready: 9, Pushed: 15}}}, before); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nready       9\n", "\npushed      15 (2.5/s)\n", "\nacked       0 (0.0/s)\n", "\nbytes       0\n"} {
		field(t, out.String(), want)
	}
}

func TestTheBusiestQueuesComeFirst(t *testing.T) {
	all := func() []queueStats {
		return []queueStats{
			{"idle", client.Stats{Ready: 9, Pushed: 100, Age: time.Minute}}, {"new", client.Stats{Claimed: 1, Pushed: 6}},
			{"back", client.Stats{Nacked: 4, Dead: 3}}, {"out", client.Stats{Popped: 5, Acked: 5}}, {"empty", client.Stats{}},
		}
	}
	for want, before := range map[string]*round{
		"out 0.0 5.0 0.0, new 3.0 0.0 0.0, back 0.0 0.0 2.0, empty 0.0 0.0 0.0, idle 0.0 0.0 0.0": {of: map[string]client.Stats{"idle": {Pushed: 100}}, took: 2 * time.Second},
		"idle - - -, out - - -, new - - -, back - - -, empty - - -":                               {},
	} {
		var out strings.Builder
		if err := printBusiest(&out, all(), before, true); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(columns(out.String(), 0, 7, 8, 9), ", "); got != want {
			t.Errorf("printed\n%s\nwant %s", out.String(), want)
		}
	}
}

func TestAQueueThatIsWatchedMayBeEmpty(t *testing.T) {
	s := serve(t, t.TempDir())
	c := statsCmd{Queues: []string{"none"}, Watch: true, WorkQueue: connection.WorkQueue{Redis: s.addrs["redis"], Timeout: patience}}
	err := c.Call(t.Context(), func(ctx context.Context, server *client.Client) error {
		all, err := c.ask(ctx, server)
		if err == nil && (len(all) != 1 || all[0].name != "none" || all[0].Ready != 0) {
			t.Errorf("%+v, want figures that are 0", all)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
