package page_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/admin/page"
)

// live is an open page.
type live struct {
	t    *testing.T
	body *bufio.Reader
}

// table is an event of queues.
type table struct {
	Whole   bool
	Columns []string
	Rows    [][]any
	Gone    [][]any
	More    int
}

func (b *client) live() *live {
	b.t.Helper()
	answer := b.ask("GET", "/page/live", "")
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != 200 || kind != "text/event-stream" {
		b.t.Fatalf("live: %d %s", answer.StatusCode, kind)
	}
	return &live{b.t.(*testing.T), bufio.NewReader(answer.Body)}
}

// next reads the next event of a name, "" at the end.
func (l *live) next(name string) (data string) {
	l.t.Helper()
	for {
		event, err := l.body.ReadString('\n')
		if err != nil {
			return ""
		}
		data, _ := l.body.ReadString('\n')
		if _, err := l.body.ReadString('\n'); err != nil {
			return ""
		}
		if event == "event: "+name+"\n" {
			return strings.TrimPrefix(data, "data: ")
		}
	}
}

// table reads the next event of queues.
func (l *live) table() (got table) {
	l.t.Helper()
	data := l.next("queues")
	if err := json.Unmarshal([]byte(data), &got); err != nil {
		l.t.Fatalf("queues: %q, %v", data, err)
	}
	return got
}

// names are the places of rows.
func (t table) names() string {
	var all []string
	for _, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return fmt.Sprintf("%d columns, %d values", len(t.Columns), len(row))
		}
		all = append(all, fmt.Sprintf("%v:%v:%v", row[0], row[1], row[2]))
	}
	for _, row := range t.Gone {
		all = append(all, fmt.Sprintf("%v:%v", row[0], row[1]))
	}
	return strings.Join(all, " ")
}

func TestAnOpenPageGetsAllQueuesAndThenWhatChanges(t *testing.T) {
	s := newSite(t).serve()
	s.redis("QPUSH", "a", "x")
	s.redis("QPUSH", "b\xff", "x")
	l := s.browse().live()
	if got := l.table(); !got.Whole || got.names() != "0:a:1 0:map[base64:Yv8=]:1" || got.Columns[2] != "ready" || got.More != 0 {
		t.Errorf("first: %+v", got)
	}
	s.redis("QPUSH", "a", "y")
	if got := l.table(); got.Whole || got.names() != "0:a:2" {
		t.Errorf("a push: %+v", got)
	}
	s.redis("DEL", "b\xff")
	if got := l.table(); got.Whole || got.names() != "0:map[base64:Yv8=]" {
		t.Errorf("a queue that goes: %+v", got)
	}
	s.redis("QPUSH", "b\xff", "x")
	if got := l.table(); got.Whole || got.names() != "0:map[base64:Yv8=]:1" {
		t.Errorf("a queue that comes: %+v", got)
	}
}

func TestAnOpenPageIsToldHowTheServerIs(t *testing.T) {
	s := newSite(t).serve()
	s.redis("QPUSH", "a", "12345")
	l := s.browse().live()
	const want = `{"at":AT,"queues":1,"packets":{"ready":1,"hidden":0,"delayed":0,"claimed":0,"dead":0,"done":0,"damaged":0},"bytes":5,` +
		`"totals":{"pushed":1,"popped":0,"acked":0,"nacked":0,"expired":0,"died":0,"dropped":0,"cancelled":0},"disk":{"free":0,"total":0,"refuses":""},` +
		`"journal":{"bytes":0,"syncs":0,"batches":0,"sync_us":0,"batch_us":0},"tables":7,"memory":{"rss":0,"heap":0,"counted":0,"limit":0,"refuses":""},"connections":null,"backup":null}`
	for range 2 {
		got := strings.TrimSpace(l.next("server"))
		var at struct{ At int64 }
		if err := json.Unmarshal([]byte(got), &at); err != nil || time.Since(time.UnixMilli(at.At)).Abs() > patience {
			t.Errorf("%s: %v", got, err)
		}
		if got = strings.Replace(got, fmt.Sprint(at.At), "AT", 1); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}

func TestAnOpenPageShowsWhatItsUserMayLookAt(t *testing.T) {
	ann := user("ann", access.Grant{Glob: "a*", Rights: access.Look})
	s := newSite(t, root(), ann).serve()
	for _, queue := range []string{"a1", "a2", "b1"} {
		s.redis("QPUSH", queue, "x")
	}
	b := s.browse()
	b.login("ann")
	l := b.live()
	if got := l.table(); got.names() != "0:a1:1 0:a2:1" {
		t.Errorf("first: %+v", got)
	}
	if got := l.next("server"); !strings.Contains(got, `"queues":2,"packets":{"ready":2,`) || strings.Contains(got, "totals") {
		t.Errorf("server: %s", got)
	}
	s.redis("QPUSH", "b1", "x")
	s.redis("QPUSH", "a2", "x")
	if got := l.table(); got.names() != "0:a2:2" {
		t.Errorf("pushes: %+v", got)
	}
	ann.Grants = []access.Grant{{Glob: "b*", Rights: access.Look}}
	s.users.Swap(usersOf(t, []access.User{root(), {Name: "ann", Grants: ann.Grants, Hashes: s.users.Users().Named("ann").User().Hashes}}))
	if got := l.table(); !got.Whole || got.names() != "0:b1:2" {
		t.Errorf("other rights: %+v", got)
	}
	s.users.Swap(usersOf(t, []access.User{root()}))
	if got := l.next("queues"); got != "" {
		t.Errorf("a page whose user is gone gets %s", got)
	}
}

func TestAnOpenPageIsToldWhichQueuesItsUserMayChange(t *testing.T) {
	ann := user("ann", access.Grant{Glob: "*", Rights: access.Look}, access.Grant{Glob: "a*", Rights: access.Manage})
	s := newSite(t, root(), ann).serve()
	s.redis("QPUSH", "a1", "x")
	s.redis("QPUSH", "b1", "x")
	b := s.browse()
	b.login("ann")
	got := b.live().table()
	at := slices.Index(got.Columns, "manage")
	if at < 0 || len(got.Rows) != 2 || got.Rows[0][at] != true || got.Rows[1][at] != false {
		t.Errorf("column %d of %+v, want that a1 may be changed and b1 not", at, got.Rows)
	}
}

func TestALogoutEndsTheOpenPages(t *testing.T) {
	b := newSite(t, root()).serve().browse()
	b.login("root")
	l := b.live()
	l.table()
	b.text("POST", "/page/logout", "")
	if got := l.next("queues"); got != "" {
		t.Errorf("it gets %s", got)
	}
}

func TestAFewPagesAreOpenAtATime(t *testing.T) {
	s := newSite(t).serve()
	b := s.browse()
	var first *http.Response
	for i := range 32 {
		answer := b.ask("GET", "/page/live", "")
		if answer.StatusCode != 200 {
			t.Fatalf("page %d: %d", i, answer.StatusCode)
		}
		if first == nil {
			first = answer
		}
	}
	if code, text := b.text("GET", "/page/live", ""); code != 503 || !strings.Contains(text, "32 pages") {
		t.Errorf("another: %d %s", code, text)
	}
	if !strings.Contains(s.log.String(), `msg="connection refused" protocol=page remote=127.0.0.1`) {
		t.Errorf("log: %s", s.log)
	}
	b.session()
	if code, text := b.command("QUEUES"); code != 200 {
		t.Errorf("a command beside them: %d %s", code, text)
	}
	first.Body.Close()
	for deadline := time.Now().Add(patience); ; {
		if code := b.ask("GET", "/page/live", "").StatusCode; code == 200 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("after one has left: %d", code)
		}
	}
}

// A page that reads nothing has the goroutine of its own stand still, and no other.
func TestAPageThatReadsNothingHindersNobodyAndGetsTheNewestState(t *testing.T) {
	s := newSite(t).serve()
	long := strings.Repeat("x", 60_000)
	for i := range 150 {
		s.redis("QPUSH", fmt.Sprint(long, i), "x")
	}
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_ = conn.(*net.TCPConn).SetReadBuffer(32 << 10) // so that the system's buffers take less than there is
	fmt.Fprintf(conn, "GET /page/live HTTP/1.1\r\nHost: %s\r\n\r\n", s.address)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil) // which comes with the first state
	if err != nil {
		t.Fatal(err)
	}
	other := s.browse().live()
	if got := other.table(); len(got.Rows) != 150 {
		t.Fatalf("%d rows", len(got.Rows))
	}
	for i := range 3 {
		s.redis("QPUSH", "short", "x")
		if got := other.table(); got.names() != fmt.Sprintf("0:short:%d", i+1) {
			t.Errorf("the other page gets %.100s", got.names())
		}
	}
	late := &live{t, bufio.NewReader(answer.Body)}
	if got := late.table(); len(got.Rows) != 150 {
		t.Errorf("%d rows", len(got.Rows))
	}
	if got := late.table(); got.names() != "0:short:3" {
		t.Errorf("then it gets %.100s, want the newest state alone", got.names())
	}
}

func TestAnOpenPageEndsWhenTheServerStops(t *testing.T) {
	for name, stop := range map[string]func(s *site){
		"the operator's": func(s *site) { s.admin.Close() },
		"the queues'":    func(s *site) { _ = s.inside.Shutdown(t.Context()) },
		"the loop":       func(s *site) { _ = s.loop.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t).serve()
			l := s.browse().live()
			l.table()
			stop(s)
			for l.next("server") != "" {
			}
		})
	}
}

func TestAnOpenPageIsCompressedForThoseThatTakeIt(t *testing.T) {
	s := newSite(t).serve()
	s.redis("QPUSH", "a", "x")
	b := s.browse()
	if got := b.ask("GET", "/page/live", "", "Accept-Encoding", "br, gzip").Header.Get("Content-Encoding"); got != "gzip" {
		t.Errorf("Content-Encoding %q", got)
	}
	if got := b.live().table(); got.names() != "0:a:1" { // Go's client asks for gzip by itself
		t.Errorf("%+v", got)
	}
	if got := b.ask("GET", "/page/live", "", "Accept-Encoding", "identity").Header.Get("Content-Encoding"); got != "" {
		t.Errorf("Content-Encoding %q", got)
	}
}

func TestAnOpenPageIsToldOfEventsOnceAndOfThoseBefore(t *testing.T) {
	s := newSite(t, root(), user("ann", access.Grant{Glob: "a*", Rights: access.Look})).serve()
	fill := func(queue string) {
		s.redis("QSET", queue, "bound", "1", "full", "drop")
		s.redis("QPUSH", queue, "x")
		s.redis("QPUSH", queue, "x")
	}
	for _, queue := range []string{"a1", "b1", "a2"} {
		fill(queue)
	}
	b := s.browse()
	b.login("ann")
	l := b.live()
	told := func(want string) {
		t.Helper()
		var got struct{ Event, Queue string }
		if data := l.next("told"); json.Unmarshal([]byte(data), &got) != nil || got.Event != "bound" || got.Queue != want {
			t.Errorf("told %q, want that %s is full", data, want)
		}
	}
	told("a1")
	told("a2")
	fill("b2")
	fill("a3")
	told("a3")
}

func TestAUserLeavesPagesForOthers(t *testing.T) {
	s := newSite(t, root(), user("ann"), user("bob")).serve()
	opened := func(name string) (n int) {
		b := s.browse()
		b.login(name)
		for b.ask("GET", "/page/live", "").StatusCode == http.StatusOK {
			n++
		}
		return n
	}
	if ann, bob, root := opened("ann"), opened("bob"), opened("root"); ann != 16 || bob != 8 || root != 5 {
		t.Errorf("ann has %d pages, bob %d and root %d: want the half of what is left, and one more for who operates", ann, bob, root)
	}
}

func TestAHistoryIsOfWhatAVisitorMayLookAt(t *testing.T) {
	s := newSite(t, root(), user("ann", access.Grant{Glob: "a*", Rights: access.Look}), user("bob", access.Grant{Glob: "*", Rights: access.Push})).serve()
	s.page.Remember(map[string]int64{"a1": 1, "a2": 2, "b\xff": 4})
	for name, want := range map[string][]string{"root": {"7", "1", "4"}, "ann": {"3", "1", "403"}, "bob": {"none", "403", "403"}} {
		b := s.browse()
		b.login(name)
		for i, body := range []string{`{}`, `{"database":0,"queue":"a1"}`, `{"queue":{"base64":"Yv8="}}`} {
			code, text := b.text("POST", "/page/history", body)
			got := fmt.Sprint(code)
			if code == 200 {
				const before = `{"columns":["at","ready","delayed","claimed","dead","pushed","popped","acked","oldest"],"samples":[`
				rows, found := strings.CutPrefix(text, before)
				if !found {
					t.Fatal(text)
				}
				if got = "none"; rows != "]}" {
					got = strings.Split(rows[strings.LastIndex(rows, "[")+1:], ",")[1]
				}
			}
			if got != want[i] {
				t.Errorf("%s asks %s: %s, want %q", name, body, got, want[i])
			}
		}
	}
	b := s.browse()
	b.login("ann")
	if code, text := b.text("POST", "/page/history", `{"queue":"a1"}`, "X-Holdfast-Token", "other"); code != 403 {
		t.Errorf("without the token: %d %s", code, text)
	}
	if code, text := b.text("POST", "/page/history", `{"queue":"nobody"}`); code != 403 {
		t.Errorf("a queue of others: %d %s", code, text)
	}
	if code, text := b.text("POST", "/page/history", `{"queue":"a9"}`); code != 200 || !strings.HasSuffix(text, `"samples":[]}`) {
		t.Errorf("a queue without a past: %d %s", code, text)
	}
}

func TestAQueueThatIsEmptyAtEachSampleHasTheRatesOfWhatPassedThrough(t *testing.T) {
	s := newSite(t).serve()
	sample := page.Sampler(&page.Source{Loop: s.loop})
	serve := func(packets int) {
		for range packets {
			s.redis("LPUSH", "jobs", "x")
			s.redis("RPOP", "jobs")
		}
	}
	serve(20)
	sample("jobs") // the first one has no rates
	for i, packets := range []int{20, 40, 0, 10} {
		serve(packets)
		if i == 3 { // a queue made anew has counted nothing yet
			s.redis("FLUSHDB")
			serve(70)
			packets = 70
		}
		if got := sample("jobs"); got != float64(packets)/10 {
			t.Errorf("sample %d: %v pushed a second, want %v", i, got, float64(packets)/10)
		}
	}
}
