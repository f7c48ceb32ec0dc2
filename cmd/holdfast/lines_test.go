package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestEachLineIsAPacket(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	var many strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&many, "line %d\n", i)
	}
	large := strings.Repeat("x", 900_000) + "\n"
	for name, text := range map[string]string{
		"none": "", "one": "a\n", "without an end": "a\nb", "empty lines": "\n\na\n\n", "bytes": "a\r\n\xff\x00\n", "many": many.String(), "large": large + large + large,
	} {
		r := s.runWith(t, text, "push", name, "--lines", "--priority", "7", "--id")
		want := strings.SplitAfter(text, "\n")
		if last := len(want) - 1; want[last] == "" {
			want = want[:last]
		} else {
			want[last] += "\n"
		}
		if r.code != exitOK || r.stderr != "" || strings.Count(r.stdout, "\n") != len(want) {
			t.Fatalf("%s: code %d, stderr %.200q, %d ids, want %d", name, r.code, r.stderr, strings.Count(r.stdout, "\n"), len(want))
		}
		var got []string
		for range (len(want) + 999) / 1000 {
			got = append(got, strings.SplitAfter(s.must(t, "pop", name, "--count", "1000"), "\n")...)
			got = got[:len(got)-1]
		}
		if name == "large" { // one reply has less
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: popped %.200q, want %.200q", name, got, want)
		}
	}
}

func TestLinesSayWhatIsOnDiskWhenTheyFail(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	long := strings.Repeat("x", 1<<20)
	s.must(t, "set", "bound", "bound=5")
	s.must(t, "set", "drop", "bound=3", "full=drop")
	for name, c := range map[string]struct {
		text, want string
		left       int
	}{
		"bound": {strings.Repeat("x\n", 1500), "on disk are the first 5 lines, and no more: queue is full", 5},
		"drop":  {strings.Repeat("x\n", 9), "on disk are the first 3 lines, and no more: the queue is full of packets", 3},
		"long":  {"a\n" + long + "x\nb\n", "on disk are the first 1 line, and no more: too large: an argument has 1048577 bytes, the limit is 1048576", 1},
		"none":  {long, "on disk are the first 0 lines, and no more: too large", 0},
	} {
		if name == "none" {
			c.text += "x"
		}
		oneErrorLine(t, s.runWith(t, c.text, "push", name, "--lines"), exitFailed, c.want)
		if r := s.run(t, "pop", name, "--count", "1000"); strings.Count(r.stdout, "\n") != c.left {
			t.Errorf("%s: %+v, want %d packets", name, r, c.left)
		}
	}
	s.stop()
	oneErrorLine(t, s.runWith(t, "a\nb\n", "push", "q", "--lines"), exitFailed, "on disk are the first 0 lines, and no more: no server answers")
}

func TestLinesThatMayBeOnDiskAreCounted(t *testing.T) {
	for greets, want := range map[bool]string{
		false: "on disk are the first 0 lines, and no more: server at",
		true:  "on disk are the first 0 lines, and perhaps 2 more: server at",
	} {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		if greets {
			go greet(silent)
		}
		r := command{stdin: "a\nb\n"}.run(t.Context(), "push", "q", "--lines", "--redis", silent.Addr().String(), "--timeout", "1s")
		oneErrorLine(t, r, exitFailed, want)
		if strings.Contains(r.stderr, "it may have carried out the request") != greets {
			t.Errorf("%q", r.stderr)
		}
	}
}

// greet answers what the first connection says of itself, and nothing else, until it ends.
func greet(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	b := make([]byte, 4096)
	for {
		n, err := conn.Read(b)
		if err != nil {
			return
		}
		said := strings.ToLower(string(b[:n]))
		_, _ = io.WriteString(conn, strings.Repeat("%1\r\n$5\r\nproto\r\n:3\r\n", strings.Count(said, "\r\nhello\r\n"))+
			strings.Repeat("+OK\r\n", strings.Count(said, "\r\nclient\r\n")))
	}
}

func TestLinesArePushedAsTheyCome(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := s.command()
	c.from = read
	pushes := c.start(t, "push", "q", "--lines")
	for i := range 3 {
		_, _ = fmt.Fprintf(write, "%d\npart", i)
		if got, want := s.must(t, "pop", "q", "--block", "0s"), fmt.Sprintf("%d\n", i); !strings.HasSuffix(got, want) {
			t.Errorf("popped %q, want %q at its end", got, want)
		}
	}
	_ = write.Close()
	if r := <-pushes.ended; r != (result{}) {
		t.Errorf("%+v, want silence", r)
	}
	if got := s.must(t, "pop", "q"); got != "part\n" {
		t.Errorf("popped %q, want the last line", got)
	}
}
