package metrics

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// door is one with three connections.
type door struct{}

func (door) Connections() (open int, a netproto.Accepted) {
	a.Served, a.Refused[netproto.RefusedMany] = 5, 2
	return 3, a
}

// withAFailedLogin is users whom somebody has tried to be.
func withAFailedLogin(t testing.TB) *access.Control {
	t.Helper()
	users, err := access.NewUsers([]access.User{{Name: "worker", Password: "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	c, done := access.NewControl(users), make(chan error)
	err = c.Login(t.Context(), netip.Addr{}, []byte("worker"), []byte("wrong"), func(_ *access.Account, err error) { done <- err })
	if err == nil {
		err = <-done
	}
	if !errors.Is(err, access.ErrWrong) {
		t.Fatal(err)
	}
	return c
}

// a is a node of a cell.
var a = Node{
	Role: "follower", Epoch: 7, Lag: 5, Behind: 3 * time.Second, Takeovers: 2, Spare: 1, Ahead: -time.Second, Clock: time.Minute,
	Others: map[string]bool{"b": true, "c": false},
}

// newPage is the page of a server on a new folder.
func newPage(t testing.TB, globs ...string) (*Metrics, Source) {
	t.Helper()
	return newPageAt(t, func() int64 { return time.Now().UnixMilli() }, globs...)
}

// newPageAt is newPage with a clock.
func newPageAt(t testing.TB, clock func() int64, globs ...string) (*Metrics, Source) {
	t.Helper()
	store, err := storage.Open(t.TempDir(), storage.Options{Sync: storage.SyncNever(), Window: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	state, err := recovery.Restore(store, recovery.Options{Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	loop, err := netproto.StartLoop(broker.New(store, state, broker.Options{}), store, netproto.LoopConfig{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = loop.Close() })
	m, err := New(Config{Version: "1.2.3", GoVersion: "go1", Queues: globs, Ready: func() error { return nil }, Node: func() Node { return a }})
	if err != nil {
		t.Fatal(err)
	}
	s := Source{
		Turns: new(Turns),
		Loop:  loop, Store: store, Recovery: state.Report, Buffers: netproto.NewBuffers(1 << 20), Doors: map[string]Door{"redis": door{}},
		Users: withAFailedLogin(t), Certificate: func() time.Time { return time.Unix(1_900_000_000, 0) },
		LastBackup: func() time.Time { return time.Unix(1_800_000_000, 0) },
	}
	m.Serve(s)
	return m, s
}

// push pushes a number of packets to each queue.
func push(t testing.TB, l *netproto.Loop, n func(queue int) int, queues ...string) {
	t.Helper()
	for i, queue := range queues {
		err := l.Do(func(tx *broker.Tx) error {
			for range n(i) {
				if _, err := tx.Push(broker.PushRequest{Queue: []byte(queue), Priority: 1, Payload: []byte("x")}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func one(int) int { return 1 }

// scrape is the page: what follows each metric with its labels.
func scrape(t testing.TB, m *Metrics) (text string, values map[string]string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	values = make(map[string]string)
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			end := strings.LastIndex(line, " ")
			values[line[:end]] = strings.TrimSpace(line[end:])
		}
	}
	return w.Body.String(), values
}

// families are the metrics of a page: their types and the names of their labels.
func families(page string) map[string]string {
	found := make(map[string]string)
	for _, f := range regexp.MustCompile(`(?m)^# TYPE (holdfast_\w+) (\w+)\n\w+(?:\{(.*)\})? `).FindAllStringSubmatch(page, -1) {
		var labels []string
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(f[3], -1) {
			if label[1] != "le" {
				labels = append(labels, label[1])
			}
		}
		slices.Sort(labels)
		found[f[1]] = fmt.Sprint(f[2], labels)
	}
	return found
}

func TestEveryMetricIsInTheTableAndNoOther(t *testing.T) {
	m, s := newPage(t)
	push(t, s.Loop, one, "q")
	page, _ := scrape(t, m)
	text, err := os.ReadFile("METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	table := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `(holdfast_\\w+)` \\| (\\w+) \\| ?([\\w, ]*) ?\\|").FindAllStringSubmatch(string(text), -1) {
		labels := strings.FieldsFunc(row[3], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels)
		table[row[1]] = fmt.Sprint(row[2], labels)
	}
	found := families(page)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if table[name] != found[name] {
			t.Errorf("the table says of %s %q, and the page %q", name, table[name], found[name])
		}
		delete(table, name)
	}
	if len(table) > 0 || len(found) < 50 {
		t.Errorf("of %d metrics, the table has these that the page has not: %v", len(found), table)
	}
	for _, other := range []string{"process_resident_memory_bytes", "go_goroutines"} {
		if !strings.Contains(page, "\n"+other+" ") {
			t.Errorf("the page has no %s", other)
		}
	}
}

func TestSystemRulesAndTheDashboardNameMetricsAndLabelsThatThereAre(t *testing.T) {
	m, s := newPage(t)
	push(t, s.Loop, one, "q")
	page, _ := scrape(t, m)
	found := families(page)
	named := regexp.MustCompile(`holdfast_\w+`).FindAllString(Rules+string(Dashboard()), -1)
	for _, name := range named {
		name, _ = strings.CutSuffix(name, "_bucket")
		if found[name] == "" {
			t.Errorf("rules or the dashboard name %s, which no page has", name)
		}
	}
	labels := " job instance " + strings.Join(slices.Collect(maps.Values(found)), " ")
	for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(Rules, -1) {
		if !regexp.MustCompile(`\b` + label[1] + `\b`).MatchString(labels) {
			t.Errorf("rules name the label %s, which no metric has", label[1])
		}
	}
	if len(named) < 12 {
		t.Errorf("only %d metrics are named", len(named))
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	if out, err := exec.Command(promtool, "check", "rules", "rules.yml").CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	if out, err := exec.Command(promtool, "test", "rules", "testdata/rules.yml").CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	queries := "groups: [{name: dashboard, rules: [\n"
	for i, q := range regexp.MustCompile(`"expr": (".*[^\\]"),`).FindAllStringSubmatch(string(Dashboard()), -1) {
		queries += fmt.Sprintf("  {record: 'query:%d', expr: %s},\n", i, strings.ReplaceAll(q[1], "$__rate_interval", "5m"))
	}
	file := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(file, []byte(queries+"]}]\n"), 0o600); err != nil || strings.Count(queries, "record") < 15 {
		t.Fatalf("%v\n%s", err, queries)
	}
	if out, err := exec.Command(promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(page)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

func TestThePageShowsTheLargestTheOldestAndTheNamedQueues(t *testing.T) {
	var now atomic.Int64
	m, s := newPageAt(t, now.Load, "mail-*", "exactly")
	now.Store(1_700_000_000_000)
	var all []string
	for i := range 1000 {
		all = append(all, fmt.Sprint("q", i))
	}
	push(t, s.Loop, one, "oldest")
	now.Add(5000)
	push(t, s.Loop, func(i int) int { return 2 + i/100 }, all...)
	push(t, s.Loop, one, "mail-1", "mail-2", "exactly", "not exactly")
	_, values := scrape(t, m)
	ready := func(queue string) string {
		return values[fmt.Sprintf(`holdfast_queue_packets{database="0",queue="%s",state="ready"}`, queue)]
	}
	for queue, want := range map[string]string{"q999": "11", "q800": "10", "q799": "", "oldest": "1", "mail-1": "1", "mail-2": "1", "exactly": "1", "not exactly": ""} {
		if got := ready(queue); got != want {
			t.Errorf("queue %s has %q packets, want %q", queue, got, want)
		}
	}
	for name, want := range map[string]string{
		`holdfast_packets{database="0",state="ready"}`: "6505", `holdfast_packets_pushed_total`: "6505", `holdfast_queues{database="0"}`: "1005",
		`holdfast_oldest_ready_age_seconds`: "5", `holdfast_queue_oldest_ready_age_seconds{database="0",queue="q999"}`: "0",
		`holdfast_connections{door="redis"}`: "3", `holdfast_connections_refused_total{door="redis",reason="too_many"}`: "2",
		`holdfast_failed_logins_total`: "1", `holdfast_tls_certificate_expiry_timestamp_seconds`: "1.9e+09", `holdfast_ready`: "1",
		`holdfast_queue_packets_pushed_total{database="0",queue="q900"}`: "11",
	} {
		if values[name] != want {
			t.Errorf("%s is %s, want %s", name, values[name], want)
		}
	}
	if shown := strings.Count(fmt.Sprint(values), "holdfast_queue_packet_bytes{"); shown < 204 || shown > 223 {
		t.Errorf("%d queues are shown", shown)
	}
}

func TestARankingKeepsWhatComesFirst(t *testing.T) {
	const many = 3000
	for name, place := range map[string]func(i int) int{
		"up": func(i int) int { return i }, "down": func(i int) int { return many - i }, "mixed": func(i int) int { return i * 7919 % many },
	} {
		q, all := newQueues(), []int{}
		for i := range many {
			all = append(all, place(i))
			q.add(broker.Surveyed{QueueFigures: broker.QueueFigures{Ready: place(i)}}, false)
		}
		slices.Sort(all)
		q.shown()
		for i, s := range q.largest.queue {
			if want := all[many-1-i]; s.Ready != want || len(q.largest.queue) != mostLargest {
				t.Fatalf("%s: number %d of %d has %d packets, want %d", name, i, len(q.largest.queue), s.Ready, want)
			}
		}
	}
}

func TestAnyNameOfAQueueIsALabel(t *testing.T) {
	m, s := newPage(t)
	long := strings.Repeat("long", 10_000)
	names := []string{"", " ", "a\nb", `a"b\`, "\xff", "\xfe", "ä", "\x00", long + "1", long + "2", strings.Repeat("\xe4", 200), `\xff`, "\ufffd"}
	push(t, s.Loop, one, names...)
	page, values := scrape(t, m)
	if shown := strings.Count(page, "\nholdfast_queue_packet_bytes{"); shown != len(names) {
		t.Errorf("%d queues are shown, want %d", shown, len(names))
	}
	for name := range values {
		if len(name) > 400 {
			t.Errorf("a series has a name of %d bytes", len(name))
		}
	}
	if values[`holdfast_queue_packets{database="0",queue="a\nb",state="ready"}`] != "1" {
		t.Error("a name with a new line is not shown as it is")
	}
}

func TestThePageIsThereBeforeTheServerServesAndAfterIt(t *testing.T) {
	early, err := New(Config{Ready: func() error { return errors.New("recovering") }})
	if err != nil {
		t.Fatal(err)
	}
	if page, values := scrape(t, early); values["holdfast_ready"] != "0" || !strings.Contains(page, "\ngo_goroutines ") {
		t.Errorf("before the server serves the page is\n%s", page)
	}
	m, s := newPage(t)
	_ = s.Loop.Close()
	if page, values := scrape(t, m); values["holdfast_storage_tables"] == "" || values["holdfast_packets_pushed_total"] != "" {
		t.Errorf("when the loop has ended the page is\n%s", page)
	}
}

func TestANodeThatFollowsShowsItselfAndItsStorage(t *testing.T) {
	m, s := newPage(t)
	m.Serve(Source{Store: s.Store, LastBackup: s.LastBackup})
	_, values := scrape(t, m)
	for name, want := range map[string]string{
		`holdfast_node_role{role="follower"}`: "1", `holdfast_node_role{role="owner"}`: "0", `holdfast_node_lag_batches`: "5", `holdfast_node_lag_seconds`: "3",
		`holdfast_node_lease_margin_seconds`: "0", `holdfast_node_clock_ahead_seconds`: "-1", `holdfast_cell_clock_ahead_seconds`: "60", `holdfast_cell_epoch`: "7", `holdfast_cell_takeovers_total`: "2",
		`holdfast_cell_spare_nodes`: "1", `holdfast_cell_node_up{node="b"}`: "1", `holdfast_cell_node_up{node="c"}`: "0",
		`holdfast_storage_floor_batch`: "0", `holdfast_packets_pushed_total`: "", `holdfast_recovery_packets`: "",
	} {
		if values[name] != want {
			t.Errorf("%s is %s, want %s", name, values[name], want)
		}
	}
}

func TestAGlobThatIsTooLongIsRefused(t *testing.T) {
	if _, err := New(Config{Queues: []string{strings.Repeat("*a", 1<<20)}}); err == nil {
		t.Error("there is a page")
	}
}

func TestScrapesAreFew(t *testing.T) {
	m, s := newPage(t)
	entered, release := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.Loop.Do(func(*broker.Tx) error {
			close(entered)
			<-release
			return nil
		})
	}()
	<-entered
	codes := make(chan int)
	for range maxScrapes + 1 {
		go func() {
			w := httptest.NewRecorder()
			m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			codes <- w.Code
		}()
	}
	if code := <-codes; code != http.StatusServiceUnavailable {
		t.Errorf("one more has status %d while %d are under way", code, maxScrapes)
	}
	close(release)
	for range maxScrapes {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("status %d, want 200", code)
		}
	}
}

// BenchmarkScrape is a scrape of 10,000 queues. Meanwhile another asks the loop all the time. Where
// the machine is busy it also waits for a processor.
func BenchmarkScrape(b *testing.B) {
	m, s := newPage(b)
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprint("queue-", i))
	}
	push(b, s.Loop, func(i int) int { return 1 + i%3 }, names...)
	end, others := make(chan struct{}), make(chan []time.Duration)
	go func() {
		var waits []time.Duration
		for {
			select {
			case <-end:
				slices.Sort(waits)
				others <- waits
				return
			default:
				begun := time.Now()
				_ = s.Loop.Do(func(*broker.Tx) error { return nil })
				waits = append(waits, time.Since(begun))
			}
		}
	}()
	for b.Loop() {
		scrape(b, m)
	}
	close(end)
	waits := <-others
	b.ReportMetric(waits[len(waits)*999/1000].Seconds()*1000, "ms/p99.9-wait")
	b.ReportMetric(waits[len(waits)-1].Seconds()*1000, "ms/longest-wait")
}
