package main

import (
	"bufio"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

// tailing is a command whose lines the test reads as they come.
type tailing struct {
	running
	lines *bufio.Reader
}

// begin runs a command until it ends or is interrupted.
func (c command) begin(t *testing.T, args ...string) *tailing {
	read, write := io.Pipe()
	c.stdout = write
	t.Cleanup(func() { _ = read.Close() })
	return &tailing{c.start(t, args...), bufio.NewReader(read)}
}

// tail runs "holdfast tail", and returns when the server has one listener more on the channel.
func (s *testServer) tail(t *testing.T, channel string, args ...string) *tailing {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.addrs["redis"]})
	defer c.Close()
	listeners := func() int64 { return c.PubSubNumSub(t.Context(), channel).Val()[channel] }
	before := listeners()
	tail := s.command().begin(t, append([]string{"tail"}, args...)...)
	for listeners() == before {
		select {
		case r := <-tail.ended:
			t.Fatalf("tail ended: %+v", r)
		default:
		}
	}
	return tail
}

func (tail *tailing) line(t *testing.T) string {
	t.Helper()
	line, err := tail.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("no further line: %v", err)
	}
	return line
}

// end reads some lines, or all of them, and stops what prints them.
func (tail *tailing) end(lines string) result {
	out, most := "", -1
	if lines != "" {
		most, _ = strconv.Atoi(lines)
	}
	for n := 0; n != most; n++ {
		line, err := tail.lines.ReadString('\n')
		if out += line; err != nil {
			break
		}
	}
	tail.interrupt()
	_, _ = io.Copy(io.Discard, tail.lines)
	r := <-tail.ended
	return result{r.code, out, r.stderr}
}

// everyByte is a name that holds each byte.
func everyByte() string {
	var name []byte
	for b := range 256 {
		name = append(name, byte(b))
	}
	return string(name)
}

func TestTailTellsWhatHappensAsItHappens(t *testing.T) {
	t.Parallel()
	s, name := serve(t, t.TempDir()), everyByte()
	s.must(t, "set", name, "max-attempts=1")
	text, asJSON := s.tail(t, "holdfast:tail:"+name, name), s.tail(t, "holdfast:tail:"+name, name, "--json")
	everywhere := s.tail(t, "holdfast:events")
	id := strings.TrimSpace(s.must(t, "push", name, "12345", "--priority", "7", "--id"))
	token := regexp.MustCompile(`"token":(\d+)`).FindStringSubmatch(s.must(t, "claim", name, "--consumer", "w\x1b[2J", "--json"))[1]
	s.must(t, "nack", name, id, token, "--reason", "no\u009b31m\xff way")
	for i, want := range []string{
		"^TIME +EVENT +ID +PRIORITY +BYTES +NOTE\n$",
		`^[\d:.]{12}  pushed +` + id + " +7 +5  -\n$",
		`^[\d:.]{12}  claimed +` + id + ` +7 +5  attempt 1, consumer "w\\x1b\[2J"` + "\n$",
		`^[\d:.]{12}  dead +` + id + ` +7 +5  attempt 1, .*"no\\u009b31m\\xff way"` + "\n$",
	} {
		if got := text.line(t); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("line %d is %q, want %s", i, got, want)
		}
	}
	for _, want := range []string{"pushed", "claimed", "dead"} {
		line := asJSON.line(t)
		var e struct {
			Event string
			Queue jsonbytes.Bytes
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Event != want || string(e.Queue) != name || strings.ContainsAny(line, "\x1b\u009b\x7f") {
			t.Errorf("%q (%v), want a JSON object: %s of the queue, without controls", line, err, want)
		}
	}
	everywhere.line(t)
	if got := everywhere.line(t); !strings.Contains(got, `  queue "\x00\x01`) || !strings.Contains(got, `way"`) || strings.ContainsAny(got, "\x1b\u009b\x7f") {
		t.Errorf("without a queue it tells %q", got)
	}
	for _, tail := range []*tailing{text, asJSON, everywhere} {
		tail.interrupt()
		if r := tail.end(""); r != (result{}) {
			t.Errorf("after a signal %+v, want silence", r)
		}
	}
}

func TestTheEndOfTheServerIsAnErrorOfTail(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	tail := s.tail(t, "holdfast:tail:q", "q")
	s.stop()
	oneErrorLine(t, <-tail.ended, exitFailed, "the server has ended the connection: what happens after that is not told")
	oneErrorLine(t, s.run(t, "tail", "q"), exitFailed, "no server answers")
}

func TestTailNeedsTheRightToLook(t *testing.T) {
	t.Parallel()
	file := configFileOf(t, "[users.default]\npassword-file = '"+configFileOf(t, "secret")+"'\ngrants = { seen = ['look'], other = ['push'] }")
	s := serve(t, t.TempDir(), "--config", file)
	env := map[string]string{"HOLDFAST_REDIS": s.addrs["redis"], "HOLDFAST_PASSWORD": "secret"}
	oneErrorLine(t, command{env: env}.run(t.Context(), "tail", "other"), exitFailed, "log in as a user that has the right")
	delete(env, "HOLDFAST_PASSWORD")
	oneErrorLine(t, command{env: env}.run(t.Context(), "tail", "seen"), exitFailed, "give the user with --user")
}
