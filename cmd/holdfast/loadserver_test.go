package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisOf is a Redis client of a server.
func redisOf(t *testing.T, s *testServer, db int) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.addrs["redis"], DB: db, MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// sends sends commands, whose arguments have spaces between; they may have Go's escapes.
func sends(t *testing.T, c *redis.Client, lines ...string) {
	t.Helper()
	for _, line := range lines {
		var args []any
		for _, word := range strings.Fields(line) {
			var text string
			if _, err := fmt.Sscanf(`"`+word+`"`, "%q", &text); err != nil {
				t.Fatal(line, err)
			}
			args = append(args, text)
		}
		if err := c.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(line, err)
		}
	}
}

// filledServer is a server with all kinds of packets, names and bytes.
func filledServer(t *testing.T) *testServer {
	t.Helper()
	s := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	c := redisOf(t, s, 0)
	far := fmt.Sprint(time.Now().Add(time.Hour).UnixMilli())
	sends(t, c,
		`QSET jobs max-attempts 1 dead-letter dead\xff bound 100 full block`, `QSET jobs enum class low high`, `QSET jobs enum \xff \x00 \x01`, `QSET jobs retain 3600000`,
		`QPUSH jobs a\x00\xff PRIO 1 KEY k TAG class low TAG \xfe \xfd PRODUCER me\xff LEASE 70000 META \xfa\x00 UNIQUE u TTL 3600000`,
		`QPUSH jobs b PRIO 7 DELAY 3600000 UNIQUE w WINDOW 3600000`, `QPUSH jobs c PRIO 0 KEY k`, `QMPUSH jobs 3 d e f PRIO 2`,
		`QPUSH dies x UNIQUE dies`, `QSET dies max-attempts 1`, `QSET shut lease 5 share-by key`, `QSHARE shut acme WEIGHT 10 MAX-CLAIMED 3`, `QSHARE shut \xff WEIGHT 2`, `QSHARE shut few MAX-CLAIMED 1`, `QSHARE shut slow RATE 10/1m HOLD 3600000`, `QSHARE shut rests HOLD 1800000`, `QCLOSE shut`, `QPUSH \x00*?[\x0d\x0a\xff hostile KEY \xff UNIQUE z UNTIL claim`,
		`RPUSH list one two three`, `LPUSH list zero`, `PEXPIREAT list `+far,
		`SET string value\xff PXAT `+far, `HSET hash f v \xff \x00`, `PEXPIREAT hash `+far,
	)
	sends(t, redisOf(t, s, 3), `QPUSH jobs of-three`, `HSET hash f three`)
	claim := func(queue, consumer string) (id, token string) {
		packets, err := c.Do(t.Context(), "QCLAIM", queue, "CONSUMER", consumer).Slice()
		if err != nil || len(packets) != 1 {
			t.Fatal(packets, err)
		}
		fields := packets[0].(map[any]any)
		return fmt.Sprint(fields["id"]), fmt.Sprint(fields["token"])
	}
	id, token := claim("jobs", "worker\xff")
	sends(t, c, "QNACK jobs "+id+" "+token+` DEAD REASON why\xff`)
	id, token = claim("jobs", "w2")
	sends(t, c, "QPROGRESS jobs "+id+" "+token+" 40 text", "QACK jobs "+id+" "+token)
	claim("jobs", "holds")
	id, token = claim("dies", "w3")
	sends(t, c, "QNACK dies "+id+" "+token+" REASON again")
	return s
}

// holdings are what a server holds, as sorted records without what differs between servers.
func holdings(t *testing.T, s *testServer) (found []string) {
	t.Helper()
	queue := ""
	for line := range strings.Lines(s.must(t, "backup", "--to", "-", "--format", "jsonl")) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r["type"] == "holdfast" || r["type"] == "end" {
			continue
		}
		for _, name := range []string{"id", "sequence", "identity", "token", "origin_id", "counters"} {
			delete(r, name)
		}
		if r["state"] == "claimed" {
			r["state"] = "ready"
			delete(r, "until")
			delete(r, "progress")
			delete(r, "progress_text")
		}
		if until, rests := r["until"].(float64); rests && r["type"] == "share" { // in tens of minutes to come
			r["until"] = math.Round(time.Until(time.UnixMilli(int64(until))).Minutes() / 10)
		}
		if r["type"] == "queue" {
			queue = fmt.Sprint(r["queue"], r["database"])
		}
		text, _ := json.Marshal(r)
		found = append(found, fmt.Sprintf("%s %s", queue, text))
	}
	slices.SortStableFunc(found, func(a, b string) int { // the packets of a queue keep their order
		return strings.Compare(strings.SplitN(a, "{", 2)[0], strings.SplitN(b, "{", 2)[0])
	})
	return found
}

func TestADumpIsLoadedIntoAServerAsItIs(t *testing.T) {
	t.Parallel()
	from := filledServer(t)
	want := holdings(t, from)
	for _, format := range []string{"msgpack", "jsonl"} {
		file := filepath.Join(t.TempDir(), "dump")
		from.must(t, "backup", "--to", file, "--format", format)
		to := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
		if got := to.must(t, "load", "--to-server", file); !strings.Contains(got, "13 packets of 7 queues loaded") {
			t.Errorf("printed %q", got)
		}
		got := holdings(t, to)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("record %d: got\n%s\nwant\n%s", i, strings.Join(got[min(i, len(got)):], "\n"), strings.Join(want[min(i, len(want)):], "\n"))
			}
		}
		to.must(t, "load", "--to-server", file)
		if again := holdings(t, to); len(again) != len(got)+13 {
			t.Errorf("a second load made %d records of %d", len(again), len(got))
		}
	}
}

func TestOneQueueMovesToAnother(t *testing.T) {
	t.Parallel()
	from := filledServer(t)
	file := filepath.Join(t.TempDir(), "dump")
	from.must(t, "backup", "--to", file)
	to := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	sends(t, redisOf(t, to, 0), `RPUSH there first`, `SET list taken`)
	oneErrorLine(t, to.run(t, "load", "--to-server", file), exitFailed, `the server has a string called "list", and the dump a queue of that name`)
	oneErrorLine(t, to.run(t, "load", "--to-server", file, "--to-queue", "there"), exitFailed, "expected one queue, and the dump has more")
	oneErrorLine(t, to.run(t, "load", "--to-server", file, "--to-queue", "there", "--queue", "none"), exitFailed, "no queue that --queue matches")
	to.must(t, "load", "--to-server", file, "--to-queue", "there", "--queue", "list")
	to.must(t, "load", "--to-server", file, "--to-queue", "there", "--queue", "list", "--db", "5")
	if got := redisOf(t, to, 0).LRange(t.Context(), "there", 0, -1).Val(); !slices.Equal(got, []string{"zero", "one", "two", "three", "first"}) {
		t.Errorf("the queue holds %q", got)
	}
	if got := redisOf(t, to, 5).LRange(t.Context(), "there", 0, -1).Val(); !slices.Equal(got, []string{"zero", "one", "two", "three"}) {
		t.Errorf("the queue of database 5 holds %q", got)
	}
	to.must(t, "load", "--to-server", file, "--queue", "hash", "--queue", "string", "--queue", "empty")
	if names := redisOf(t, to, 0).Keys(t.Context(), "[^h]*").Val(); !slices.Contains(names, "string") || slices.Contains(names, "jobs") {
		t.Errorf("the server has %q", names)
	}
}

func TestWhatTheServerHasKeepsItsSettingsAndValues(t *testing.T) {
	t.Parallel()
	from := filledServer(t)
	file := filepath.Join(t.TempDir(), "dump")
	from.must(t, "backup", "--to", file)
	to := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	c := redisOf(t, to, 0)
	sends(t, c, "QSET jobs lease 77 pause-in yes", "RPUSH list here", "SET string mine", "SET hash mine")
	if got := to.must(t, "load", "--to-server", file); !strings.Contains(got, "2 strings and hashes left out because of their names") {
		t.Errorf("printed %q", got)
	}
	for name, want := range map[string]string{"string": "mine", "hash": "mine"} {
		if got := c.Get(t.Context(), name).Val(); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	settings, err := c.Do(t.Context(), "QGET", "jobs").Result()
	if said := fmt.Sprint(settings); err != nil || !strings.Contains(said, "lease:77") || !strings.Contains(said, "max-attempts:5") {
		t.Errorf("the settings are %s, %v", said, err)
	}
	if ttl := c.TTL(t.Context(), "list").Val(); ttl != -1 {
		t.Errorf("the list that was there expires in %v", ttl)
	}
}

func TestADumpThatIsNotWholeChangesNoServer(t *testing.T) {
	t.Parallel()
	from := filledServer(t)
	whole := []byte(from.must(t, "backup", "--to", "-"))
	changed := bytes.Replace(whole, []byte("three"), []byte("THREE"), 1)
	to := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	for want, text := range map[string][]byte{
		"cut short":              whole[:len(whole)-5],
		"has no end record":      whole[:bytes.LastIndex(whole, []byte("\xa4type\xa3end"))-1],
		"not a dump":             []byte("text"),
		"the dump was changed":   changed,
		"the dump is empty":      nil,
		"is it two dumps in one": append(bytes.Clone(whole), whole...),
	} {
		file := filepath.Join(t.TempDir(), "dump")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		r := to.run(t, "load", "--to-server", file)
		oneErrorLine(t, r, exitFailed, want)
		if !strings.Contains(r.stderr, "nothing was loaded") {
			t.Errorf("stderr %q", r.stderr)
		}
	}
	if got := holdings(t, to); len(got) > 0 {
		t.Errorf("the server has %q", got)
	}
}

// manyOf makes a dump of n packets, in a queue and a hash.
func manyOf(t *testing.T, n int) (file string) {
	t.Helper()
	s := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	c := redisOf(t, s, 0)
	pipe := c.Pipeline()
	for i := range n {
		pipe.Do(t.Context(), "QPUSH", "q", fmt.Sprintf("%06d", i))
		pipe.HSet(t.Context(), "h", fmt.Sprint(i), i)
	}
	pipe.Expire(t.Context(), "q", time.Hour)
	pipe.Expire(t.Context(), "h", time.Hour)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "dump")
	s.must(t, "backup", "--to", file)
	return file
}

func TestPacketsWithManyTagsAreLoadedIntoAServer(t *testing.T) {
	t.Parallel()
	s := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	args := []any{"QMPUSH", "jobs", 1000}
	for i := range 1000 {
		args = append(args, i)
	}
	for i := range 5 { // 5 MB in all
		args = append(args, "TAG", i, strings.Repeat("v", 1000))
	}
	if err := redisOf(t, s, 0).Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	s.must(t, "backup", "--to", file)
	s.must(t, "load", "--to-server", file, "--to-queue", "others")
	if n := redisOf(t, s, 0).LLen(t.Context(), "others").Val(); n != 1000 {
		t.Errorf("%d packets, want 1000", n)
	}
}

// where is the record from which a load that was cut short goes on.
var where = regexp.MustCompile(`--from ([0-9,]+) goes on there`)

// hangsUp passes bytes on to a server. One connection ends after so many bytes of requests, the
// next after so many of replies.
func hangsUp(t *testing.T, address string, requests, replies int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for i := 0; ; i++ {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			limits := [2]int64{requests, math.MaxInt64}
			if i%2 > 0 {
				limits = [2]int64{math.MaxInt64, replies}
			}
			go func() { // ends with either connection
				_, _ = io.CopyN(server, client, limits[0])
				_ = server.Close()
			}()
			_, _ = io.CopyN(client, server, limits[1])
			_, _ = server.Close(), client.Close()
		}
	}()
	return l.Addr().String()
}

func TestALoadThatIsCutShortGoesOnWithoutLoss(t *testing.T) {
	t.Parallel()
	const n = 2000
	file := manyOf(t, n)
	s := serve(t, filepath.Join(t.TempDir(), "data"))
	door := hangsUp(t, s.addrs["redis"], 20_000, 8000)
	cuts, from := 0, "1"
	for {
		r := s.run(t, "load", "--to-server", file, "--redis", door, "--from", from)
		if r.code == exitOK {
			break
		}
		cuts++
		record := where.FindStringSubmatch(r.stderr)
		if record == nil || record[1] == from {
			t.Fatalf("%+v", r)
		}
		from = record[1]
	}
	if cuts < 3 {
		t.Errorf("the load was cut short %d times, want some", cuts)
	}
	c := redisOf(t, s, 0)
	times := make(map[string]int)
	twice := 0
	for _, payload := range c.LRange(t.Context(), "q", 0, -1).Val() {
		if times[payload]++; times[payload] > 1 {
			twice++
		}
	}
	const pipe = 64 // records
	if len(times) != n || twice > cuts*pipe {
		t.Errorf("%d packets, and %d twice after %d cuts; want %d, and at most %d a cut", len(times), twice, cuts, n, pipe)
	}
	if fields := c.HLen(t.Context(), "h").Val(); fields != n {
		t.Errorf("%d fields, want %d", fields, n)
	}
	if c.TTL(t.Context(), "q").Val() <= 0 || c.TTL(t.Context(), "h").Val() <= 0 {
		t.Error("they do not expire")
	}
	oneErrorLine(t, s.run(t, "load", "--to-server", file, "--from", "1000000"), exitFailed, "--from: expected at most 4004, the records of the dump")
}

// What the server has is its own, unless --from says that the load has begun it.
func TestALoadThatGoesOnKeepsWhatOthersHad(t *testing.T) {
	t.Parallel()
	const n = 2000 // the queue is record 2, its packets up to n+2, the hash is n+3
	file := manyOf(t, n)
	to := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	c := redisOf(t, to, 0)
	for from, want := range map[string]struct {
		fields  int64
		expires bool
	}{
		"2": {1, false}, "1000": {1, false}, fmt.Sprint(n + 3): {1, false}, fmt.Sprint(n + 1000): {1, false},
		fmt.Sprint("2,2,", n+3): {n, true}, fmt.Sprint("1000,2,", n+3): {n, true}, fmt.Sprint(n+5, ",2,", n+3): {n - 1, false},
	} {
		c.Del(t.Context(), "h", "q")
		sends(t, c, "HSET h mine 0", "RPUSH q mine")
		to.must(t, "load", "--to-server", file, "--from", from)
		want.fields += min(1, want.fields/2) // mine
		if got := c.HLen(t.Context(), "h").Val(); got != want.fields {
			t.Errorf("from %s: %d fields, want %d", from, got, want.fields)
		}
		if got := c.TTL(t.Context(), "q").Val() > 0; got != want.expires {
			t.Errorf("from %s: the queue expires: %v, want %v", from, got, want.expires)
		}
	}
	c.Del(t.Context(), "h")
	sends(t, c, "SET h mine")
	to.must(t, "load", "--to-server", file, "--from", fmt.Sprint(n))
	if got := c.Get(t.Context(), "h").Val(); got != "mine" {
		t.Errorf("the string is %q", got)
	}
}

func TestALoadIsRefusedInWords(t *testing.T) {
	t.Parallel()
	file := manyOf(t, 3)
	secrets := t.TempDir()
	puts(t, secrets, "loader", "pusher")
	to := serve(t, filepath.Join(t.TempDir(), "data"), "--config", configFileOf(t, `
[users.loader]
password-file = "`+secrets+`/loader"
grants = { "q" = ["push", "manage"], "h" = ["look"] }
[users.pusher]
password-file = "`+secrets+`/pusher"
grants = { "*" = ["push", "look"] }
`))
	as := func(user string, args ...string) result {
		env := map[string]string{"HOLDFAST_REDIS": to.addrs["redis"], "HOLDFAST_PASSWORD": user}
		return command{env: env}.run(context.Background(), append([]string{"load", "--to-server", file, "--user", user}, args...)...)
	}
	oneErrorLine(t, as("pusher"), exitFailed, "the user needs push and manage for all that is loaded")
	r := as("loader") // what is before the hash in one pipeline is loaded
	oneErrorLine(t, r, exitFailed, "record 7, HSET of \"h\"")
	oneErrorLine(t, r, exitFailed, "no permissions")
	oneErrorLine(t, r, exitFailed, "3 of about 3 packets are loaded; --from 7,2,6 goes on there")
	if r := as("loader", "--queue", "q"); r.code != exitOK {
		t.Errorf("%+v", r)
	}
	for want, args := range map[string][]string{
		"expected FILE and DIR, or --to-server FILE": {file},
		"expected a FILE, but no folder":             {"--to-server", file, "dir"},
		"expected a file, as it is read twice":       {"--to-server", "-"},
		"--queue, --to-queue and --from go with":     {file, "dir", "--queue", "q"},
	} {
		oneErrorLine(t, command{}.run(t.Context(), append([]string{"load"}, args...)...), exitUsage, want)
	}
}
