package barbershop_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A script is a session: lines to send (>), replies that must come (<), and events (!). A line to
// send may be a Go string in double quotes. What is sent before an event goes out in one write.

// step is what is sent between two events, and the replies to it.
type step struct {
	line    int
	sent    []string
	replies string
	happens []string // the words of the event that ends the step
}

func readScript(t *testing.T, name string) []step {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	steps := []step{{line: 1}}
	in := bufio.NewScanner(file)
	for n := 1; in.Scan(); n++ {
		now := &steps[len(steps)-1]
		text := in.Text()
		mark, rest, _ := strings.Cut(text, " ")
		switch {
		case text == "" || mark == "#":
		case mark == ">":
			if strings.HasPrefix(rest, `"`) {
				if rest, err = strconv.Unquote(rest); err != nil {
					t.Fatalf("%s:%d: %v", name, n, err)
				}
			}
			now.sent = append(now.sent, rest)
		case mark == "<":
			now.replies += rest + "\r\n"
		case mark == "!":
			now.happens = strings.Fields(rest)
			steps = append(steps, step{line: n + 1})
		default:
			t.Fatalf("%s:%d: expected a line that begins with >, <, ! or #", name, n)
		}
	}
	return steps
}

// happen carries out an event.
func (b *board) happen(words []string) {
	b.t.Helper()
	switch words[0] {
	case "restart":
		b.restart()
	case "wait": // seconds
		n, err := strconv.Atoi(words[1])
		if err != nil {
			b.t.Fatal(err)
		}
		b.now.Add(int64(n))
	case "push": // key, priority, time to live, payload: through another protocol
		priority, err := strconv.ParseUint(words[2], 10, 32)
		if err != nil {
			b.t.Fatal(err)
		}
		ttl, err := time.ParseDuration(words[3])
		if err != nil {
			b.t.Fatal(err)
		}
		b.push(words[1], uint32(priority), ttl, strings.Join(words[4:], " "))
	default:
		b.t.Fatalf("%q cannot happen", words)
	}
}

func TestScripts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range names {
		steps := readScript(t, name)
		for end, ending := range map[string]string{"CRLF": "\r\n", "LF": "\n"} {
			for _, apart := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/apart=%v", filepath.Base(name), end, apart), func(t *testing.T) {
					play(t, newBoard(t), steps, ending, apart)
				})
			}
		}
	}
}

// play runs a script. apart sends every byte by itself.
func play(t *testing.T, b *board, steps []step, ending string, apart bool) {
	c := b.dial()
	for _, s := range steps {
		text := ""
		for _, line := range s.sent {
			text += line + ending
		}
		if !apart {
			c.send(text)
		}
		for i := 0; apart && i < len(text); i++ {
			c.send(text[i : i+1])
		}
		if got := c.read(len(s.replies)); got != s.replies {
			t.Fatalf("from line %d on: got\n%s\nwant\n%s", s.line, got, s.replies)
		}
		if len(s.happens) == 0 {
			continue
		}
		b.happen(s.happens)
		if s.happens[0] == "restart" {
			c = b.dial()
		}
	}
	c.wantEnd()
}

// read reads n bytes, or fewer if the connection ends or the time is over.
func (c *client) read(n int) string {
	buf := make([]byte, n)
	have := 0
	_ = c.conn.SetReadDeadline(time.Now().Add(limit))
	for have < n {
		m, err := c.conn.Read(buf[have:])
		if have += m; err != nil {
			break
		}
	}
	return string(buf[:have])
}
