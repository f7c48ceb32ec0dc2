package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/config"
)

func TestSetAndUnsetPrintWhatIsSetThen(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for _, step := range []struct{ command, want string }{
		{"set q lease=2d bound-bytes=64MiB full=drop", "bound-bytes  64MiB\nfull         drop\nlease        2d\n"},
		{"set q enum.class=low,high retain=1w --json", `{"retain":604800000,"enum":{"class":["low","high"]}}` + "\n"},
		{"unset q lease full", "full   reject\nlease  30s\n"},
		{"unset q enum.class --json", "{}\n"},
		{"unset q bound-bytes max-attempts dead-letter pause-in retain", "bound-bytes   0B\ndead-letter   -\nmax-attempts  5\npause-in      no\nretain        0s\n"},
	} {
		if got := s.must(t, strings.Fields(step.command)...); got != step.want {
			t.Errorf("%s printed %q, want %q", step.command, got, step.want)
		}
	}
	oneErrorLine(t, s.run(t, "unset", "none", "lease"), exitNothing, `queue "none": no queue has this name`)
	if got := s.must(t, "queues", "--match", "none"); strings.Contains(got, "none") {
		t.Error("a failed unset has made the queue")
	}
}

func TestEverySettingHasTheDefaultOfTheServer(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.must(t, "set", "fresh", "max-attempts=5")
	s.must(t, append([]string{"set", "q"}, "max-attempts=1", "lease=1s", "backoff-min=2s", "backoff-max=3s", "dead-letter=d", "retain=4s",
		"bound=5", "bound-bytes=6B", "full=drop", "exclusive-producer=yes", "exclusive-consumer=yes", "pause-in=yes", "pause-out=yes", "enum.t=a,b")...)
	var names []string
	for _, name := range config.SettingNames() {
		names = append(names, strings.Replace(name, "TAG", "t", 1))
	}
	s.must(t, append([]string{"unset", "q"}, names...)...)
	if got, want := s.must(t, "get", "q"), s.must(t, "get", "fresh"); got != want {
		t.Errorf("settings are\n%s, want the defaults\n%s", got, want)
	}
}

func TestAPausedQueueTakesAndGivesNothingUntilItIsResumed(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "x")
	for _, step := range []struct {
		args            []string
		want            string
		push, claimable bool
	}{
		{[]string{"pause", "q"}, "pause-in   yes\npause-out  yes\n", false, false},
		{[]string{"resume", "q", "--in"}, "pause-in  no\n", true, false},
		{[]string{"resume", "q"}, "pause-in   no\npause-out  no\n", true, true},
		{[]string{"pause", "q", "--out", "--json"}, `{"pause_out":true}` + "\n", true, false},
		{[]string{"pause", "q", "--in", "--out"}, "pause-in   yes\npause-out  yes\n", false, false},
	} {
		if got := s.must(t, step.args...); got != step.want {
			t.Errorf("%q printed %q, want %q", step.args, got, step.want)
		}
		if got := s.run(t, "push", "q", "x").code == exitOK; got != step.push {
			t.Errorf("after %q a push was taken: %v, want %v", step.args, got, step.push)
		}
		if got := s.run(t, "claim", "q").code == exitOK; got != step.claimable {
			t.Errorf("after %q a claim was given: %v, want %v", step.args, got, step.claimable)
		}
	}
	oneErrorLine(t, s.run(t, "pause", "new"), exitNothing, `queue "new": no queue has this name`)
	oneErrorLine(t, s.run(t, "get", "new"), exitNothing, `queue "new": no queue has this name`)
	s.must(t, "pause", "new", "--create")
	oneErrorLine(t, s.run(t, "push", "new", "x"), exitFailed, "paused")
	oneErrorLine(t, s.run(t, "resume", "none"), exitNothing, `queue "none": no queue has this name`)
}

func TestPacketsAreDeletedByTheirIDs(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	var ids []string
	for range 3 {
		ids = append(ids, strings.TrimSpace(s.must(t, "push", "q", "x", "--id")))
	}
	oneErrorLine(t, s.run(t, "delete", "q", ids[0]), exitUsage, `this would delete 1 packet of queue "q": confirm it with --yes`)
	if got := s.must(t, "delete", "q", ids[0], "77777", "--yes"); got != "1 packet deleted\n" {
		t.Errorf("printed %q", got)
	}
	oneErrorLine(t, s.run(t, "delete", "q", ids[0]), exitNothing, "nothing with such an id")
	oneErrorLine(t, s.run(t, "delete", "none", "1"), exitNothing, "nothing with such an id")
	oneErrorLine(t, s.run(t, "delete", "q", ids[0], ids[1]), exitUsage, "this would delete 1 packet")
	oneErrorLine(t, s.run(t, "delete", "q", ids[0], "--yes"), exitNothing, "nothing with such an id")
	oneErrorLine(t, s.run(t, "delete", "none", "1", "--yes"), exitNothing, "nothing with such an id")
	if got := s.must(t, "delete", "q", ids[1], ids[2], "--yes", "--json"); got != `{"packets":2}`+"\n" {
		t.Errorf("printed %q", got)
	}
	oneErrorLine(t, s.run(t, append([]string{"delete", "q", "--yes"}, slices.Repeat([]string{"1"}, 1001)...)...), exitUsage, "1000")
	oneErrorLine(t, s.run(t, "delete", "q", "first", "--yes"), exitUsage, `expected the id of a packet, as "holdfast push --id" and "holdfast list" print it, got "first"`)
}

func TestPacketsAreCancelledByTheirIDs(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	ids := strings.Fields(s.must(t, "push", "q", "a", "--id") + s.must(t, "push", "q", "b", "--id"))
	c := claim(t, s, "q", "--lease", "1h")
	oneErrorLine(t, s.run(t, "cancel", "q", ids[0]), exitUsage, `this would cancel 1 packet of queue "q": confirm it with --yes`)
	if got := s.must(t, "cancel", "q", ids[0], ids[1], "77777", "--yes"); got != ids[0]+"      told\n"+ids[1]+"      gone\n77777  none\n" {
		t.Errorf("printed %q", got)
	}
	if got := s.must(t, "list", "q"); !strings.Contains(got, "left, cancelled\n") {
		t.Errorf("listed as %q", got)
	}
	if got := s.must(t, "show", "q", ids[0], "--json"); !strings.Contains(got, `"cancelled":true`) {
		t.Errorf("shown as %q", got)
	}
	if got := s.must(t, "show", "q", ids[0]); !strings.Contains(got, "; it was cancelled, and is gone when the claim ends\n") {
		t.Errorf("shown as %q", got)
	}
	oneErrorLine(t, s.run(t, append(append([]string{"extend"}, c.receipt()...), "1h")...), exitStale, "the packet was cancelled")
	if got := s.must(t, append(append([]string{"nack"}, c.receipt()...), "--dead")...); got != "cancelled\n" {
		t.Errorf("printed %q", got)
	}
	oneErrorLine(t, s.run(t, "cancel", "q", ids[0], "--yes"), exitNothing, "nothing with such an id")
}

func TestACancelledClaimGoesThroughADump(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := serve(t, data)
	for range 2 {
		s.must(t, "push", "q", "x", "--id")
	}
	c := claim(t, s, "q", "--lease", "1h")
	s.must(t, "cancel", "q", c.ID, "--yes")
	s.stop()
	dump := filepath.Join(t.TempDir(), "dump")
	done(t, "dump", data, "-o", dump, "--quiet")
	again := filepath.Join(t.TempDir(), "again")
	done(t, "load", dump, again, "--quiet")
	if first, second := string(readFile(t, dump)), done(t, "dump", again, "-o", "-", "--quiet"); first != second || !strings.Contains(first, `"cancelled":true`) {
		t.Errorf("dumped again as\n%swas\n%s", second, first)
	}
	copied, other := serve(t, again), serve(t, t.TempDir())
	other.must(t, "load", dump, "--to-server", "--quiet")
	if got := copied.must(t, append([]string{"nack"}, c.receipt()...)...); got != "cancelled\n" {
		t.Errorf("a claim that was loaded ends as %q", got)
	}
	for _, s := range []*testServer{copied, other} {
		if got := s.must(t, "list", "q", "--json"); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"state":"ready"`) {
			t.Errorf("the queue has %s", got)
		}
	}
}

func TestADelayedPacketIsRunNowOrLater(t *testing.T) {
	s := serve(t, t.TempDir())
	id := strings.TrimSpace(s.must(t, "push", "q", "x", "--delay", "1h", "--id"))
	s.must(t, "run", "q", id)
	s.must(t, "peek", "q")
	s.must(t, "run", "q", id, "--at", "2100-01-01T00:00Z")
	if got := s.must(t, "show", "q", id, "--json"); !strings.Contains(got, `"not_before":4102444800000,`) {
		t.Error(got)
	}
	s.must(t, "run", "q", id, "--delay", "1ms")
	oneErrorLine(t, s.run(t, "run", "q", "77777"), exitNothing, "no such packet: 77777 in q")
}

func TestWhatRunHasChangedGoesThroughADump(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := serve(t, data)
	ids := make(map[string]string)
	for _, name := range []string{"claimed", "ready", "delayed"} {
		ids[name] = strings.TrimSpace(s.must(t, "push", "q", name, "--delay", "2h", "--id"))
		if name == "delayed" {
			s.must(t, "run", "q", ids[name], "--delay", "1h")
			continue
		}
		s.must(t, "run", "q", ids[name])
		if name == "claimed" {
			s.must(t, "claim", "q", "--lease", "1h")
		}
	}
	soon := regexp.MustCompile(`"not_before":\d+`)
	moment := soon.FindString(s.must(t, "list", "q", "--state", "delayed", "--json"))
	s.stop()
	if got := done(t, "verify", data, "--json", "--quiet"); !strings.Contains(got, `"ready":1,"delayed":1,"claimed":1,`) {
		t.Error(got)
	}
	dump := filepath.Join(t.TempDir(), "dump")
	done(t, "dump", data, "-o", dump, "--quiet")
	again := filepath.Join(t.TempDir(), "again")
	done(t, "load", dump, again, "--quiet")
	copied, other := serve(t, again), serve(t, t.TempDir())
	other.must(t, "load", dump, "--to-server", "--quiet")
	for _, c := range []struct {
		s       *testServer
		claimed string
	}{{copied, "claimed"}, {other, "ready"}} {
		for name, want := range map[string]string{"claimed": c.claimed, "ready": "ready", "delayed": "delayed"} {
			list := c.s.must(t, "list", "q", "--state", want, "--json")
			if !strings.Contains(list, `"payload":"`+name+`"`) || name == "delayed" && soon.FindString(list) != moment {
				t.Errorf("%s is not %s, %s: %s", name, want, moment, list)
			}
		}
	}
}

func TestAPauseWithAnEndGoesThroughADump(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := serve(t, data)
	const until = `{"pause_out":true,"pause_out_until":4102444800000}` + "\n"
	if got := s.must(t, "pause", "q", "--out", "--create", "--until", "2100-01-01T00:00Z", "--json"); got != until {
		t.Error(got)
	}
	if got := s.must(t, "pause", "q", "--in", "--for", "1h"); !strings.Contains(got, "(in 59") && !strings.Contains(got, "(in 1 h") && !strings.Contains(got, "(in 1h") {
		t.Error(got)
	}
	s.stop()
	dump := filepath.Join(t.TempDir(), "dump")
	done(t, "dump", data, "-o", dump, "--quiet")
	again := filepath.Join(t.TempDir(), "again")
	done(t, "load", dump, again, "--quiet")
	s = serve(t, again)
	if got := s.must(t, "get", "q", "--json"); !strings.Contains(got, `"pause_out":true,"pause_out_until":4102444800000`) {
		t.Error(got)
	}
	for _, flag := range []string{"--for=0s", "--for=-1s", "--until=2020-01-01T00:00Z"} {
		oneErrorLine(t, s.run(t, "pause", "q", flag), exitUsage, strings.Split(flag, "=")[0])
	}
	s.must(t, "resume", "q")
	if got := s.must(t, "get", "q", "--json"); !strings.Contains(got, `"pause_out":false,"pause_out_until":0`) {
		t.Error(got)
	}
	other := serve(t, t.TempDir())
	other.must(t, "load", dump, "--to-server", "--quiet")
	if got := other.must(t, "get", "q", "--json"); !strings.Contains(got, `"pause_out":true,"pause_out_until":4102444800000`) {
		t.Error(got)
	}
}

func TestThePriorityOfAPacketIsChanged(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "x")
	second := strings.TrimSpace(s.must(t, "push", "q", "y", "--id"))
	s.must(t, "prio", "q", second, "1")
	if got, want := columns(s.must(t, "peek", "q"), 2, 7), []string{"1 y", "128 x"}; !slices.Equal(got, want) {
		t.Errorf("packets are %q, want %q", got, want)
	}
	s.must(t, "prio", "q", second, "128")
	if got, want := columns(s.must(t, "peek", "q"), 2, 7), []string{"128 x", "128 y"}; !slices.Equal(got, want) {
		t.Errorf("packets are %q, want %q: by age", got, want)
	}
	oneErrorLine(t, s.run(t, "prio", "q", "77777", "1"), exitNothing, "no such packet: 77777 in q")
	oneErrorLine(t, s.run(t, "drop", "none", "--yes"), exitNothing, `queue "none": no queue has this name`)
	oneErrorLine(t, s.run(t, "prio", "none", "1", "1"), exitNothing, "no queue has this name")
	oneErrorLine(t, s.run(t, "prio", "q", second, "0"), exitFailed, "the packet has no key")
}

func TestConsumersAreListedWithWhatTheyHold(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for _, queue := range []string{"a", "b", "b", "b"} {
		s.must(t, "push", queue, "x")
	}
	s.must(t, "claim", "a", "--consumer", "w1")
	s.must(t, "claim", "b", "--consumer", "w2", "--count", "2")
	c := claim(t, s, "b", "--consumer", "w1")
	s.must(t, append([]string{"ack"}, c.receipt()...)...)
	if got, want := columns(s.must(t, "consumers"), 0, 1, 2), []string{"a w1 1", "b w1 0", "b w2 2"}; !slices.Equal(got, want) {
		t.Errorf("consumers are %q, want %q", got, want)
	}
	var w struct {
		Queue, Consumer string
		Claimed         int
		Since, Seen     int64
		IDs             []string
	}
	lines := strings.SplitAfter(s.must(t, "consumers", "b", "--json"), "\n")
	if err := json.Unmarshal([]byte(lines[1]), &w); err != nil || len(lines) != 3 || w.Queue != "b" || w.Consumer != "w2" || w.Claimed != 2 || len(w.IDs) != 2 || w.Since == 0 || w.Seen < w.Since {
		t.Errorf("%q, %v; want w2 with 2 packets in the second line of two", lines, err)
	}
	if !strings.Contains(lines[0], `"ids":[]`) || strings.Contains(lines[0], "since") {
		t.Errorf("%q, want w1 with nothing", lines[0])
	}
	oneErrorLine(t, s.run(t, "consumers", "none"), exitNothing, `queue "none": no queue has this name`)
}

func TestStatusTellsHowTheServerIs(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	before, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	connections := func() (n int64) {
		var o struct {
			Version             string
			Uptime              *int64
			Connections, Memory int64
			Redis               int64  `json:"redis_clients"`
			Free                int64  `json:"disk_free"`
			Total               int64  `json:"disk_total"`
			Level               string `json:"disk_level"`
			Damaged             *int64 `json:"damaged_packets"`
		}
		out := s.must(t, "status", "--json")
		if err := json.Unmarshal([]byte(out), &o); err != nil || o.Version == "" || o.Uptime == nil || o.Redis != 1 || o.Memory < 1<<20 || o.Free < 1<<20 || o.Total < o.Free || o.Level != "normal" || o.Damaged == nil {
			t.Fatalf("%s, %v; want all figures", out, err)
		}
		return o.Connections
	}
	for late := time.Now().Add(patience); connections() != 2; { // the server accepts when it comes to it
		if time.Now().After(late) {
			t.Fatal("status does not count the connection of pinpriq")
		}
	}
	want := regexp.MustCompile(`^version +\S+\nuptime +\d.*s\nconnections +\d+ in all, 1 of Redis clients\nmemory +\S+ .iB, \S+ .iB counted of \S+ .iB\ndisk +\S+ .iB of \S+ .iB free\n\nNothing needs you\.\n$`)
	if got := s.must(t, "status"); !want.MatchString(got) {
		t.Errorf("printed\n%s", got)
	}
}

func TestStatusSaysWhatNeedsSomebody(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.must(t, "set", "orders", "max-attempts=1", "dead-letter=graves")
	s.must(t, "push", "orders", "x")
	c := claim(t, s, "orders")
	s.must(t, append(append([]string{"nack"}, c.receipt()...), "--dead")...)
	s.must(t, "push", "soon", "x", "--db", "3")
	s.must(t, "pause", "soon", "--db", "3")
	want := []string{"1 packet that died elsewhere is in a dead-letter queue: graves (1)", "Queues are paused: soon of database 3 (1 ready)"}
	r := s.run(t, "status")
	if !strings.HasSuffix(r.stdout, " free\n\n"+strings.Join(want, ".\n")+".\n") || r.stderr != "" || r.code != exitTrouble {
		t.Errorf("%+v, want %q", r, want)
	}
	var o struct{ Problems []string }
	if r := s.run(t, "status", "--json"); json.Unmarshal([]byte(r.stdout), &o) != nil || !slices.Equal(o.Problems, want) || r.code != exitTrouble {
		t.Errorf("%+v, want %q", r, want)
	}
	s.must(t, "redrive", "graves")
	s.must(t, "resume", "soon", "--db", "3")
	if got := s.must(t, "status"); !strings.HasSuffix(got, "\n\nNothing needs you.\n") {
		t.Errorf("printed %q", got)
	}
}

func TestStatusOfAnotherServerIsRefused(t *testing.T) {
	r := redisWords(t, map[string]string{"HELLO": "-ERR unknown command", "INFO": "$20\r\nredis_version:7.0.15"}, exitFailed, "status")
	if !slices.ContainsFunc(r, func(words []string) bool { return strings.EqualFold(words[0], "info") }) {
		t.Errorf("sent %q, want INFO", r)
	}
}

// redisWords serves one client that speaks RESP and gets OK for all that it sends, but for what
// answers says, and returns the words of each of its requests.
func redisWords(t *testing.T, answers map[string]string, code int, args ...string) (requests [][]string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended := make(chan struct{})
	go func() { // ends with the connection
		defer close(ended)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewScanner(conn)
		for in.Scan() {
			n, _ := strconv.Atoi(strings.TrimPrefix(in.Text(), "*"))
			words := make([]string, n)
			for i := range words {
				in.Scan()
				in.Scan()
				words[i] = in.Text()
			}
			requests = append(requests, words)
			answer, ok := answers[strings.ToUpper(words[0])]
			if !ok {
				answer = "+OK"
			}
			if _, err := conn.Write([]byte(answer + "\r\n")); err != nil {
				return
			}
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := command{env: map[string]string{"HOLDFAST_REDIS": l.Addr().String()}}.run(ctx, args...)
	_ = l.Close()
	<-ended
	if r.code != code {
		t.Fatalf("%q: %+v; sent %q", args, r, requests)
	}
	return requests
}

// oldRedis is a server without HELLO.
var oldRedis = map[string]string{"HELLO": "-ERR unknown command 'HELLO'", "QPUSH": "$1\r\n7"}

func TestTheDatabaseIsSelectedBeforeAnythingElse(t *testing.T) {
	for db, want := range map[string]bool{"0": false, "3": true, "15": true} {
		requests := redisWords(t, oldRedis, exitOK, "push", "q", "x", "--db", db)
		selected := slices.IndexFunc(requests, func(r []string) bool { return slices.Equal(r, []string{"select", db}) })
		pushed := slices.IndexFunc(requests, func(r []string) bool { return r[0] == "QPUSH" })
		if (selected >= 0) != want || selected > pushed {
			t.Errorf("--db %s sent %q", db, requests)
		}
	}
}

func TestAMomentIsSentInUnixMilliseconds(t *testing.T) {
	local := time.Date(2026, 12, 1, 8, 0, 0, 0, time.Local).UnixMilli()
	for text, want := range map[string]int64{
		"2026-12-01T08:00": local, "2026-12-01T08:00:01.5": local + 1500, "2026-12-01T08:00Z": 1796112000000,
		"2026-12-01T08:00+02:00": 1796104800000, "2026-12-01T08:00:01-01:30": 1796117401000,
	} {
		requests := redisWords(t, oldRedis, exitOK, "push", "q", "x", "--at", text)
		push := requests[len(requests)-1]
		if at := slices.Index(push, "AT"); at < 0 || push[at+1] != strconv.FormatInt(want, 10) || slices.Contains(push, "DELAY") {
			t.Errorf("--at %s sent %q, want AT %d", text, push, want)
		}
	}
}
