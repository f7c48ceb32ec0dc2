package resp

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// testdata/replies.txt holds scripts of commands with their replies. Each begins, behind its name,
// on an empty server.
//
//	> command      on a connection that speaks RESP2
//	3> command     on one that speaks RESP3
//	>~ command     elements of the reply are in any order
//	a> command     on a connection of that name, which then waits
//	a<             the reply to that
//	= reply        what redis-server replies, and Holdfast if no other line follows
//	! reply        what Holdfast replies: COMMANDS.md says why
//	restart        stops Holdfast and starts it
//
// An argument may be quoted; {9:x} stands for nine x.
const repliesFile = "testdata/replies.txt"

var update = flag.Bool("update", false, "write the replies of redis-server to "+repliesFile)

// step is a line of a script with what follows from it.
type step struct {
	line       int
	text       string // the line
	connection string // "", "3", or the name of one that waits
	wait, read bool
	unordered  bool
	args       []string
	redis      string
	holdfast   string // "" if as redis
}

type script struct {
	name  string
	steps []*step
}

func readScripts(t *testing.T) (scripts []*script) {
	t.Helper()
	data, err := os.ReadFile(repliesFile)
	if err != nil {
		t.Fatal(err)
	}
	var last *step
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case line == "":
		case strings.HasPrefix(line, "# "):
			scripts = append(scripts, &script{name: line[2:]})
		case strings.HasPrefix(line, "= "):
			last.redis = line[2:]
		case strings.HasPrefix(line, "! "):
			last.holdfast = line[2:]
		default:
			last = readStep(t, i+1, line)
			s := scripts[len(scripts)-1]
			s.steps = append(s.steps, last)
		}
	}
	return scripts
}

var stepLine = regexp.MustCompile(`^([a-z3]?)([<>])(~?) ?(.*)$`)

func readStep(t *testing.T, number int, line string) *step {
	t.Helper()
	s := &step{line: number, text: line}
	if line == "restart" {
		return s
	}
	m := stepLine.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("%s:%d: %q", repliesFile, number, line)
	}
	s.connection, s.read, s.unordered = m[1], m[2] == "<", m[3] != ""
	s.wait = s.connection >= "a" && !s.read
	for _, word := range regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`).FindAllString(m[4], -1) {
		s.args = append(s.args, unquoted(t, word))
	}
	return s
}

var run = regexp.MustCompile(`\{(\d+):(.)\}`)

func unquoted(t *testing.T, word string) string {
	t.Helper()
	if text, err := strconv.Unquote(word); err == nil {
		return text
	}
	return run.ReplaceAllStringFunc(word, func(s string) string {
		m := run.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[1])
		return strings.Repeat(m[2], n)
	})
}

// target is a server to run scripts against.
type target interface {
	dial() *conn
	restart()
}

// play runs a script and calls got with each reply.
func play(t *testing.T, s *script, server target, got func(s *step, reply string)) {
	t.Helper()
	clients := make(map[string]*conn)
	on := func(name string) *conn {
		c := clients[name]
		if c == nil {
			c = server.dial()
			clients[name] = c
			if name == "3" {
				c.do("HELLO", "3")
			}
		}
		return c
	}
	on("").do("FLUSHALL")
	waiting := 0
	for _, s := range s.steps {
		switch c := on(s.connection); {
		case s.args == nil && !s.read:
			server.restart()
			clear(clients)
		case s.wait:
			c.send(request(s.args...))
			waiting++
			on("").awaitBlocked(waiting)
		default:
			if s.read {
				waiting--
			} else {
				c.send(request(s.args...))
			}
			r := c.read()
			if s.unordered {
				r.sort()
			}
			got(s, r.String())
		}
	}
}

func TestRepliesAreThoseOfRedis(t *testing.T) {
	server := newOther(t)
	for _, s := range readScripts(t) {
		t.Run(s.name, func(t *testing.T) {
			server.t = t
			play(t, s, server, func(s *step, got string) {
				want := s.redis
				if s.holdfast != "" {
					want = s.holdfast
				}
				if got != want {
					t.Errorf("%s:%d: %s: %s, want %s", repliesFile, s.line, s.text, got, want)
				}
			})
		})
	}
}

func TestSystemRedisRepliesAsWritten(t *testing.T) {
	t.Parallel()
	server := newOriginal(t)
	var out bytes.Buffer
	for _, s := range readScripts(t) {
		fmt.Fprintf(&out, "# %s\n", s.name)
		replies := make(map[*step]string)
		t.Run(s.name, func(t *testing.T) {
			play(t, s, server, func(s *step, got string) {
				replies[s] = got
				if got != s.redis && !*update {
					t.Errorf("%s:%d: %s: %s, want %s", repliesFile, s.line, s.text, got, s.redis)
				}
			})
		})
		for _, s := range s.steps {
			fmt.Fprintln(&out, s.text)
			if reply, ok := replies[s]; ok {
				fmt.Fprintln(&out, "= "+reply)
			}
			if s.holdfast != "" {
				fmt.Fprintln(&out, "! "+s.holdfast)
			}
		}
		fmt.Fprintln(&out)
	}
	if *update {
		if err := os.WriteFile(repliesFile, bytes.TrimSuffix(out.Bytes(), []byte("\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
