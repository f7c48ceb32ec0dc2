package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// namesIn are the names of what is in a folder.
func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// puts makes files, which hold their names.
func puts(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBackupsOfATimerKeepTheNewestOfTheirOwnNamesAndKind(t *testing.T) {
	t.Parallel()
	s := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	s.must(t, "push", "q", "x")
	dir := t.TempDir()
	others := []string{
		"holdfast-20200101T000000.000Z.jsonl", "holdfast-20200101T000000.000Z.msgpack.old", "holdfast-2020.msgpack",
		"a.msgpack", ".holdfast-20200101T000000.000Z.msgpack", "holdfast-20200101T000000.000ZZmsgpack",
	}
	puts(t, dir, others...)
	puts(t, dir, "holdfast-20200101T000000.000Z.msgpack", "holdfast-20200102T000000.000Z.msgpack", "holdfast-20990101T000000.000Z.msgpack")
	if err := os.Mkdir(filepath.Join(dir, "holdfast-20190101T000000.000Z.msgpack"), 0o700); err != nil {
		t.Fatal(err)
	}
	var made struct {
		File                                  string
		Bytes, Packets, Queues, Keys, Removed int64
	}
	if err := json.Unmarshal([]byte(s.must(t, "backup", "--to", dir, "--keep", "3", "--json")), &made); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(made.File); err != nil || info.Size() != made.Bytes || made.Packets != 1 || made.Queues != 1 || made.Removed != 1 {
		t.Errorf("made %+v, %v", made, err)
	}
	want := append([]string{
		"holdfast-20190101T000000.000Z.msgpack", "holdfast-20200102T000000.000Z.msgpack", filepath.Base(made.File), "holdfast-20990101T000000.000Z.msgpack",
	}, others...)
	slices.Sort(want)
	if got := namesIn(t, dir); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	// The clock went back: the new one is the oldest by its name.
	out := strings.TrimSpace(s.must(t, "backup", "--to", dir+"/", "--keep", "1"))
	want = append([]string{"holdfast-20190101T000000.000Z.msgpack", filepath.Base(out)}, others...)
	slices.Sort(want)
	if got := namesIn(t, dir); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestBackupOfATimerThatIsNotWholeRemovesNothing(t *testing.T) {
	cut := adminOf(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"type":"holdfast","version":2,"next_sequence":"9223372036854775808","low_sequence":"9223372036854775807","next_queue":1}`+"\n")
	})
	dir := t.TempDir()
	names := []string{"holdfast-20200101T000000.000Z.msgpack", "holdfast-20200102T000000.000Z.msgpack"}
	puts(t, dir, names...)
	oneErrorLine(t, command{}.run(t.Context(), "backup", "--to", dir, "--keep", "1", "--admin", cut), exitFailed, "has no end record")
	if got := namesIn(t, dir); !slices.Equal(got, names) {
		t.Errorf("the folder holds %q, want %q", got, names)
	}
}

func TestSystemBackupOfATimerThatIsKilledLeavesNoFileWithAName(t *testing.T) {
	begun := make(chan struct{})
	stalled := adminOf(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"type":"holdfast","version":2,"next_sequence":"9223372036854775808","low_sequence":"9223372036854775807","next_queue":1}`+"\n")
		_, _ = w.Write([]byte(strings.Repeat("\n", 1<<20))) // so that there is a file
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
	})
	dir := t.TempDir()
	puts(t, dir, "holdfast-20200101T000000.000Z.msgpack")
	cmd := itself(t, "backup", "--to", dir, "--keep", "1", "--admin", stalled)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-begun
	for len(namesIn(t, dir)) < 2 {
		time.Sleep(time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	names := namesIn(t, dir)
	if len(names) != 2 || names[1] != "holdfast-20200101T000000.000Z.msgpack" || !strings.HasPrefix(names[0], ".holdfast-") {
		t.Fatalf("the folder holds %q", names)
	}
	// What it left goes when nobody has written it for long.
	s := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	s.must(t, "backup", "--to", dir)
	if got := namesIn(t, dir); len(got) != 3 {
		t.Errorf("what may still be written has gone: %q", got)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, names[0]), old, old); err != nil {
		t.Fatal(err)
	}
	s.must(t, "backup", "--to", dir)
	if got := namesIn(t, dir); slices.Contains(got, names[0]) || len(got) != 3 {
		t.Errorf("the folder holds %q", got)
	}
}

func TestTimersAtOneTimeDoNoHarm(t *testing.T) {
	t.Parallel()
	s := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	s.must(t, "push", "q", "x")
	dir := t.TempDir()
	for i := range 5 {
		puts(t, dir, fmt.Sprintf("holdfast-2020010%dT000000.000Z.msgpack", i+1))
	}
	var timers sync.WaitGroup
	made := make(chan string, 20)
	for range 4 {
		timers.Go(func() {
			for range 5 {
				if r := s.run(t, "backup", "--to", dir, "--keep", "3"); r.code == exitOK {
					made <- r.stdout
				} else if !strings.Contains(r.stderr, "another backup is under way") {
					t.Errorf("%+v", r)
				}
			}
		})
	}
	timers.Wait()
	close(made)
	if len(made) == 0 {
		t.Fatal("no backup was made")
	}
	names := namesIn(t, dir)
	if len(names) < 1 || len(names) > 3 {
		t.Errorf("the folder holds %q", names)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "holdfast-2020") {
			done(t, "load", filepath.Join(dir, name), filepath.Join(t.TempDir(), "copy"))
		}
	}
}

func TestKeepNeedsAFolder(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"expected --to to name the folder":        {"--to", filepath.Join(dir, "file"), "--keep", "3"},
		"--json: standard output gets the backup": {"--to", "-", "--json"},
		"--keep: expected ":                       {"--to", dir, "--keep=-1"},
	} {
		oneErrorLine(t, command{}.run(t.Context(), append([]string{"backup"}, args...)...), exitUsage, want)
	}
	r := command{}.run(t.Context(), "backup", "--to", filepath.Join(dir, "none")+"/")
	oneErrorLine(t, r, exitFailed, "make the folder first")
	if _, err := os.Stat(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the folder was made")
	}
}
