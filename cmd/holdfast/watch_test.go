package main

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"time"
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
	stdout, figures := io.Pipe()
	stderr, complaints := io.Pipe()
	copied, copies := io.Pipe()
	first, back := sees(io.TeeReader(stdout, copies), "(0.0/s)"), sees(copied, "pushed           3")
	away := sees(stderr, "no server answers")
	c := s.command()
	c.stdout, c.stderr = figures, complaints
	watches := c.start(t, "stats", "q", "--watch", "--every", "1ms")
	awaited(t, first, "rates")
	s.stop()
	awaited(t, away, "error")
	serve(t, dir, "--redis", s.addrs["redis"]).must(t, "push", "q", "x")
	awaited(t, back, "figures of the server that is back")
	watches.interrupt()
	if r := <-watches.ended; r.code != exitOK {
		t.Errorf("%+v, want exit code 0", r)
	}
}

func TestAQueueThatIsWatchedMayBeEmpty(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	r := s.command().begin(t, "stats", "none", "--watch").end("2")
	if rows := columns(r.stdout, 0, 1); r.code != exitOK || !slices.Equal(rows, []string{"ready 0"}) {
		t.Errorf("%+v, want figures that are 0", r)
	}
}
