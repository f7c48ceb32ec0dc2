package browser_test

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

func TestADeadPacketIsFoundUnderstoodAndRedrivenByClicks(t *testing.T) {
	s := serve(t, daemon.Config{})
	id := s.die("mails", `{"to":"ann","to":"a \"{","10":[],"n":1234567890123456789}`, "no such address")
	other := s.die("mails", "another", "mailbox full")
	tb := open(t, s.page+"#/")
	tb.sees("2 packets are dead")
	tb.click("mails")
	tb.sees("mailbox full")
	tb.click(id)
	tb.sees("Dead after 1 attempt, because: no such address")
	tb.sees("{\n  \"to\": \"ann\",\n  \"to\": \"a \\\"{\",\n  \"10\": [],\n  \"n\": 1234567890123456789\n}")
	tb.click("Retry…")
	tb.until("document.querySelector('dialog button[type=submit]:enabled')")
	const said = "document.querySelector('dialog .counted').offsetHeight"
	if height := eval[float64](tb, said); height != 0 {
		t.Errorf("what the dialog has to say is nothing, and %v px high", height)
	}
	tb.click("Retry")
	tb.sees("1 packet was made ready again.")
	tb.until(said + " > 30")
	tb.click("Close")
	tb.until("!document.querySelector('dialog')")
	if got := s.state("mails", id) + " " + s.state("mails", other); got != "ready dead" {
		t.Errorf("the packets are %s, want ready, and the other dead", got)
	}
}

func TestAQueueSaysWhyNothingMoves(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.ask("QPUSH", "idle", "x")
	s.ask("QSET", "paused", "pause-out", "yes")
	s.ask("QPUSH", "paused", "x")
	s.ask("QPUSH", "later", "x", "DELAY", 3_600_000)
	s.ask("QSET", "full", "bound", 1)
	s.ask("QPUSH", "full", "x")
	s.ask("QPUSH", "lent", "x")
	s.ask("QCLAIM", "lent", "CONSUMER", "w1")
	s.ask("QSET", "orders", "dead-letter", "graves")
	grave := s.die("orders", "x", "no such order")
	tb := open(t, s.page+"#/")
	tb.sees("1 packet that died elsewhere is in a dead-letter queue: graves (1)")
	tb.goes("#/queue?db=0&name=graves")
	tb.click("Retry dead…")
	tb.until("document.querySelector('dialog button[type=submit]:enabled')")
	tb.click("Retry")
	tb.sees("1 packet is ready again.")
	tb.click("Close")
	tb.until("[...document.querySelectorAll('.actions button')].find((b) => b.textContent === 'Retry dead…').title === 'No packet is dead.'")
	s.ask("QDEL", "orders", grave)
	s.ask("DEL", "orders", "graves")
	tb.goes("#/")
	tb.sees("Queues are full: full")
	tb.sees("Queues are paused: paused")
	tb.goes("#/queues")
	tb.until("[...document.querySelectorAll('.states')].map((e) => e.innerText.trim()).join() === 'full,,,,paused-out'")
	tb.goes("#/queues?filter=paused-o")
	tb.until("[...document.querySelectorAll('.queues td a')].map((a) => a.textContent).join() === 'paused'")
	s.die("mails", "x", "no such address")
	tb.goes("#/queues?filter=dead")
	tb.until("[...document.querySelectorAll('.queues td a')].map((a) => a.textContent).join() === 'mails'")
	tb.goes("#/")
	tb.click("Dead")
	tb.until("document.querySelector('th[aria-sort=descending]')?.textContent === 'Dead'")
	for queue, why := range map[string]string{
		"idle": "Nobody waits for packets", "paused": "Deliveries are paused", "later": "One packet is delayed; the next is ready at",
		"full": "at its bound of 1 packet: pushes are refused", "lent": "1 packet is with consumers",
	} {
		tb.goes("#/queue?db=0&name=" + queue)
		tb.sees(why)
	}
	tb.goes("#/queue?db=0&name=paused")
	tb.click("Resume deliveries…")
	tb.click("Resume")
	tb.sees("Deliveries are resumed.")
	s.ask("QPAUSE", "paused", "UNTIL", 4_000_000_000_123) // in 2096
	tb.sees("Deliveries are paused until 2096")
	s.ask("QPAUSE", "paused", "UNTIL", 0)
	tb.sees("Nobody waits for packets")
}

func TestTimesAreOfTheReadersZone(t *testing.T) {
	s := serve(t, daemon.Config{})
	const at = 4_000_000_000_123 // in 2096
	id := s.ask("QPUSH", "later", "x", "AT", at).(string)
	s.die("mails", "x", "no such address")
	tb := open(t, s.page+"#/packet?db=0&name=later&id="+id)
	call(tb, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "America/New_York"})
	tb.run(chromedp.Navigate(s.page + "#/log"))
	tb.run(chromedp.Reload())
	tb.sees("Times are in America/New_York, UTC−0")
	for hash, begins := range map[string]string{"#/packet?db=0&name=later&id=" + id: "Delayed until 2096-10-02 03:06:40", "#/queue?db=0&name=later": "the next is ready at 2096-10-02 03:06:40, in "} {
		tb.goes(hash)
		tb.sees(begins)
		tb.until("[...document.querySelectorAll('time')].some((t) => t.title === '2096-10-02 03:06:40.123 UTC−04:00')")
		if got := tb.text(); strings.Contains(got, "Z") && strings.Contains(got, "T07:") {
			t.Errorf("%s has a time of another zone: %q", hash, got)
		}
	}
	tb.goes("#/log")
	tb.until("/^\\d{4}-.*UTC−0\\d:00$/.test(document.querySelector('.log time')?.title)")
}

func hostile() []string {
	const script = `<script>alert("script")</script><img src=x onerror=alert("image")>`
	return []string{script, "javascript:alert(1)", "\xff\xfe\x00<b>", "abc\u202egpj.exe", "../../x?a=1&b=2#c%00", "", "__proto__", `{"base64":"eA=="}`, strings.Repeat("long ", 12_000)}
}

func TestNamesAndPayloadsRunNothing(t *testing.T) {
	s := serve(t, daemon.Config{})
	tb := open(t, s.page+"#/")
	for _, name := range hostile() {
		id := s.ask("QPUSH", name, name, "KEY", "k"+name[:min(len(name), 200)], "TAG", "t<i>", name[:min(len(name), 100)], "PRODUCER", "p"+name[:min(len(name), 100)]).(string)
		s.ask("QCLAIM", name, "CONSUMER", "w"+name[:min(len(name), 100)])
		place := url.Values{"db": {"0"}, "name": {name}, "id": {id}}
		if name == hostile()[2] {
			place = url.Values{"db": {"0"}, "base64": {"//4APGI+"}, "id": {id}}
		}
		query := strings.ReplaceAll(place.Encode(), "+", "%20")
		tb.goes("#/queue?" + query)
		tb.until(fmt.Sprintf("[...document.querySelectorAll('.packets a')].some((a) => a.textContent === %q)", id))
		tb.click(id)
		tb.until("document.querySelector('pre')")
		if n := eval[int](tb, "document.querySelectorAll('main script, main img, main b, main i').length"); n != 0 {
			t.Errorf("%.60q: the page has %d elements that the server sent", name, n)
		}
		if name == hostile()[0] {
			if got := eval[string](tb, "document.querySelector('pre').textContent"); got != name {
				t.Errorf("the payload shows as %q, want it as it is", got)
			}
		}
	}
	tb.goes("#/queues")
	tb.sees(fmt.Sprint(len(hostile()), " queues"))
	tb.sees(`\u{202e}`)
	s.die(hostile()[2], "x", "\xfd<i>")
	tb.goes("#/log")
	tb.sees(`\xff\xfe\x00<b> Packet`)
	tb.sees(`died after 1 attempt: \xfd<i>`)
	tb.goes("#/")
	tb.sees("Ready")
}

func TestLargePayloadsShowTheirBeginning(t *testing.T) {
	s := serve(t, daemon.Config{})
	for range 10 {
		s.ask("QPUSH", "large", strings.Repeat("é", 500_000))
	}
	id := s.ask("QPEEK", "large").([]any)[0].(map[any]any)["id"].(string)
	tb := open(t, s.page+"#/queue?db=0&name=large")
	tb.sees("Page 1, 10 packets.")
	tb.click(id)
	tb.sees("977 KiB; the first 64 KiB are shown")
	if n := eval[int](tb, "document.querySelector('pre').textContent.length"); n != 65536/2 {
		t.Errorf("%d characters are shown, want 32768", n)
	}
	tb.click("Save")
	tb.until("document.querySelector('.problem') === null")
	if tb.mu.Lock(); tb.bytes > 3<<20 {
		t.Errorf("the page received %.0f bytes, want at most 3 MiB", tb.bytes)
	}
	tb.mu.Unlock()
}

func TestTenThousandQueuesAreFewElements(t *testing.T) {
	const queues = 10_000
	s := serve(t, daemon.Config{})
	pipe := s.Pipeline()
	for i := range queues {
		pipe.Do(context.Background(), "QPUSH", fmt.Sprintf("tenant-%05d", i), "x")
	}
	if _, err := pipe.Exec(context.Background()); err != nil {
		t.Fatal(err)
	}
	tb := open(t, s.page+"#/queues")
	tb.sees("10,000 queues")
	t.Logf("there after %.0f ms", eval[float64](tb, "performance.now()"))
	few := func() {
		t.Helper()
		if n := eval[int](tb, "document.querySelectorAll('.queues tr').length"); n > 100 {
			t.Errorf("the table has %d rows, want at most 100", n)
		}
	}
	few()
	tb.tabTo("Filter by name or state")
	tb.types("tenant-09998")
	tb.sees("1 of 10,000 queues")
	tb.types(strings.Repeat(kb.Backspace, len("09998")))
	tb.sees("10,000 queues")
	tb.types(kb.ArrowDown + kb.End)
	tb.until("document.activeElement.textContent === 'tenant-09999'")
	few()
	tb.t.Logf("frames while scrolling, in ms: %v", eval[[]float64](tb, `new Promise((done) => {
		const frames = []; let before = performance.now();
		const next = (now) => { frames.push(Math.round(now - before)); before = now; scrollBy(0, -300); frames.length < 60 ? requestAnimationFrame(next) : done(frames.sort((a, b) => a - b).filter((_, i) => [0, 30, 54, 59].includes(i))); };
		requestAnimationFrame(next); })`))
	few()
	eval[any](tb, "scrollTo(0, document.body.scrollHeight)")
	tb.click("tenant-09997")
	tb.sees("Nobody waits for packets")
}

func TestAMillionPacketsAreOnePage(t *testing.T) {
	s := serve(t, daemon.Config{})
	words := []any{"QMPUSH", "jobs", 1000}
	for range 1000 {
		words = append(words, strings.Repeat("x", 100))
	}
	for range 10 {
		pipe := s.Pipeline()
		for range 100 {
			pipe.Do(context.Background(), words...)
		}
		if _, err := pipe.Exec(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	tb := open(t, s.page+"#/queue?db=0&name=jobs")
	tb.sees("1,000,000")
	tb.sees("Page 1, 20 packets; there are more.")
	t.Logf("there after %.0f ms", eval[float64](tb, "performance.now()"))
	tb.click("Next page")
	tb.sees("Page 2, 20 packets; there are more.")
	if n := eval[int](tb, "document.querySelectorAll('*').length"); n > 2000 {
		t.Errorf("the page has %d elements, want at most 2000", n)
	}
	all := open(t, s.page+"#/queues")
	all.sees("1,000,000")
	if n := eval[int](all, "[...document.querySelectorAll('.queues td')].filter(d => d.scrollWidth > d.clientWidth).length"); n > 0 {
		t.Errorf("%d fields of the table of queues do not hold their text", n)
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if tb.bytes > 1<<20 {
		t.Errorf("the page received %.0f bytes, want at most 1 MiB", tb.bytes)
	}
}

func TestWhatHappensIsInTheLog(t *testing.T) {
	s := serve(t, daemon.Config{})
	first := s.die("mails", "x", "no such <b>address</b>")
	s.ask("QSET", "slow", "alert-age", 1)
	s.ask("QPUSH", "slow", "x")
	tb := open(t, s.page+"#/log")
	tb.sees("Packet " + first + " died after 1 attempt: no such <b>address</b>")
	second := s.die("mails", "x", "mailbox full")
	tb.sees("Packet " + second + " died after 1 attempt: mailbox full")
	tb.until("[...document.querySelectorAll('.log a')].filter((a) => a.innerText === 'mails').length === 2")
	tb.goes("#/")
	tb.sees("The oldest packet is older than the alert-age of its queue: slow")
	s.ask("CLIENT", "KILL", "TYPE", "pubsub") // which ends the page's connection, too
	tb.sees("Connection lost")
	tb.until("!document.body.matches('.stale')")
	third := s.die("mails", "x", "again")
	tb.goes("#/log")
	tb.sees("Packet " + third + " died")
	if n := eval[int](tb, "[...document.querySelectorAll('.log li')].filter((li) => li.innerText.includes('mails')).length"); n != 3 {
		t.Errorf("%d packets have died by the log, want 3", n)
	}
	s.ask("QSET", "jobs", "dead-letter", "graves")
	moved := s.die("jobs", "x", "first line\nsecond line")
	tb.sees("Packet " + moved + " died and moved to graves after 1 attempt: first line ↵ second line")
	tb.click("Packet " + moved)
	tb.until("document.querySelector('.path')?.innerText.includes('graves')")
	tb.sees("first line\nsecond line")
}

func TestAConsumerThatIsSilentIsNamed(t *testing.T) {
	s := serve(t, daemon.Config{})
	tb := open(t, s.page+"#/queues")
	tb.sees("0 queues")
	if got := eval[string](tb, `import("/page/reasons.js").then(({ reasons }) => {
		const now = Date.now(), q = { ready: 42, claimed: 9 }, rates = { popped: 0, acked: 0 };
		return reasons(q, rates, {}, {}, [
			{ name: "stuck", claimed: 8, since: now - 2_160_500, seen: now - 2_160_500, waiting: [] },
			{ name: "busy", claimed: 1, since: now - 1000, seen: now - 1000, waiting: [] }]).join(" "); })`); got != "stuck holds 8 packets for 36 min 0 s, and was last heard of 36 min 0 s ago. Consumers are at work, and none waits for more packets." {
		t.Errorf("the page says %q", got)
	}
}

func TestAQueueShowsWhichSharesWait(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.ask("QPUSH", "plain", "x")
	tb := open(t, s.page+"#/queue?name=plain")
	tb.sees("Nobody claims or waits.")
	const table = "[...document.querySelectorAll('section.shares tbody tr')].map((r) => [...r.children].slice(0, 3).map((c) => c.innerText).join(' ') + ' ' + r.lastChild.innerText).join()"
	if got := eval[bool](tb, "document.querySelector('section.shares[hidden]') !== null"); !got {
		t.Error("a queue without share-by shows shares")
	}
	s.ask("QSET", "tenants", "share-by", "key")
	s.ask("QSHARE", "tenants", "<b>acme", "WEIGHT", 10, "MAX-CLAIMED", 3)
	for _, key := range []string{"<b>acme", "<b>acme", "small"} {
		s.ask("QPUSH", "tenants", "x", "KEY", key)
	}
	s.ask("QPUSH", "tenants", "x")
	s.ask("QCLAIM", "tenants", "SHARE", "small")
	tb.goes("#/queue?name=tenants")
	tb.until(table + " === '<b>acme 2 0 of 3 –,(none) 1 0 –,small 0 1 –'")
}

func TestAQueueShowsWhoPushed(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.ask("QSET", "mails", "bound", 9)
	tb := open(t, s.page+"#/queue?name=mails")
	tb.sees("Nobody has pushed of late.")
	for _, name := range []string{"<b>shop", "<b>shop", "press"} {
		s.ask("CLIENT", "SETNAME", name)
		s.ask("QPUSH", "mails", "x")
	}
	tb.until("[...document.querySelectorAll('.producers tbody tr')].map((r) => [...r.children].slice(0, 3).map((c) => c.innerText).join(' ')).sort().join() === '<b>shop default 2,press default 1'")
}

func TestWhatStopsAShareIsSeen(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.ask("QSET", "tenants", "share-by", "tag:tenant", "share-max-claimed", 1, "strict", "yes")
	s.ask("QSHARE", "tenants", "slow", "RATE", "1/1d")
	for key, tenant := range map[string]string{"1": "acme", "2": "big", "3": "big", "4": "slow", "5": "slow", "6": "keyed"} {
		s.ask("QPUSH", "tenants", "x", "TAG", "tenant", tenant, "KEY", key)
	}
	s.ask("QPUSH", "tenants", "x", "TAG", "tenant", "keyed", "KEY", "6")
	claimed := s.ask("QCLAIM", "tenants", "SHARE", "acme", "CONSUMER", "w3").([]any)[0].(map[any]any)
	s.ask("QNACK", "tenants", claimed["id"], claimed["token"], "HOLD", 3_600_000, "REASON", "429")
	for _, tenant := range []string{"big", "slow", "keyed"} {
		s.ask("QCLAIM", "tenants", "SHARE", tenant)
	}
	s.ask("QSHARE", "tenants", "keyed", "MAX-CLAIMED", 2)
	tb := open(t, s.page+"#/queue?name=tenants")
	for tenant, why := range map[string]string{
		"acme": "rests for .*, said by .w3., until .*:.*", "big": "has 1 of 1 claimed", "slow": "waits for the rate 1/1d: the next is due in .*, until .*:.*", "keyed": "waits for other packets of its keys",
	} {
		tb.until(fmt.Sprintf("/^%s$/.test([...document.querySelectorAll('section.shares tbody tr')].find((r) => r.firstChild.innerText === %q)?.lastChild.innerText)", strings.ReplaceAll(why, "/", "\\/"), tenant))
	}
	tb.sees("Shares of which all is claimed that may be: 1.")
	tb.sees("Shares that wait for their rate or rest: 2.")
	tb.sees("Packets that wait for another one of their key: 1.")
}

func TestAPageThatIsLeftLetsGoOfItsConnection(t *testing.T) {
	s := serve(t, daemon.Config{})
	tb := open(t, s.page+"#/")
	for range 8 { // a browser opens six connections to one server
		tb.sees("Nothing needs you.")
		tb.run(chromedp.Navigate("about:blank"), chromedp.Navigate(s.page+"#/"))
	}
	tb.sees("Nothing needs you.")
}

func TestAFilterWithOneMatchOpensIt(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.ask("QPUSH", "mails", "x")
	s.ask("QPUSH", "jobs", "x")
	tb := open(t, s.page+"#/queues")
	tb.sees("2 queues")
	tb.tabTo("Filter by name or state")
	tb.types(kb.Enter + "ail")
	tb.sees("1 of 2 queues")
	tb.types(kb.Enter)
	tb.until("document.querySelector('h1').textContent === 'mails'")
	tb.sees("these are the defaults of the server")
	tb.sees("Backoff max")
}

func TestJSONShowsLettersAndEscapesStayWhole(t *testing.T) {
	s := serve(t, daemon.Config{})
	tb := open(t, s.page+"#/")
	for payload, want := range map[string][2]string{ // the text, and what stays whole beside text from right to left
		`["\u00e4\ud83d\ude00","\\u00e4","\ud83d","\u202e","\n"]`: {"[\n  \"ä😀\",\n  \"\\\\u00e4\",\n  \"\\ud83d\",\n  \"\\u{202e}\",\n  \"\\n\"\n]", ""},
		"\u202eשלום\x00": {"\\u{202e}שלום\\x00", `\u{202e},\x00`},
	} {
		id := s.ask("QPUSH", "mails", payload).(string)
		tb.goes("#/packet?db=0&name=mails&id=" + id)
		tb.until("document.querySelector('h1').textContent === 'Packet " + id + "' && document.querySelector('pre')")
		for i, of := range []string{"document.querySelector('pre').textContent", "[...document.querySelectorAll('pre bdi[dir=ltr]')].map((e) => e.textContent).join()"} {
			if got := eval[string](tb, of); got != want[i] {
				t.Errorf("%q: %s is %q, want %q", payload, of, got, want[i])
			}
		}
	}
}

func TestALostConnectionIsSaidAndMended(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.ask("QPUSH", "jobs", "x")
	tb := open(t, s.page+"#/")
	tb.sees("Nothing needs you.")
	s.stop()
	tb.sees("Connection lost")
	tb.until("document.body.matches('.stale')")
	if got := tb.text(); !strings.Contains(got, "Nothing needs you.") {
		t.Error("the last figures are gone")
	}
	s.start()
	tb.until("!document.body.matches('.stale')")
}

func TestThePageFitsAPhoneAndTheNight(t *testing.T) {
	s := serve(t, daemon.Config{})
	for _, name := range hostile() {
		s.die(name, strings.Repeat("wide", 500), strings.Repeat("x", 3000))
	}
	id := s.die("jobs", `{"a":"`+strings.Repeat("wide", 500)+`"}`, strings.Repeat("x", 3000))
	tb := open(t, s.page+"#/")
	tb.run(chromedp.EmulateViewport(360, 800))
	call(tb, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	long := "&name=" + url.PathEscape(hostile()[len(hostile())-1])
	for view, shows := range map[string]string{
		"": "are dead", "queues": "queues", "queue?db=0&name=jobs": "Page 1", "queue?db=0" + long: "Page 1", "packet?db=0&name=jobs&id=" + id: "Payload", "log": "Log",
	} {
		tb.goes("#/" + view)
		tb.sees(shows)
		if width := eval[int](tb, "document.documentElement.scrollWidth"); width > 360 {
			t.Errorf("#/%.40s is %d px wide, want 360", view, width)
		}
	}
	if got := eval[string](tb, "getComputedStyle(document.body).backgroundColor"); got != "rgb(18, 21, 24)" {
		t.Errorf("at night the ground is %s, want a dark one", got)
	}
}

func TestAQueueThatWentAndCameAtOnceIsThere(t *testing.T) {
	s := serve(t, daemon.Config{})
	tb := open(t, s.page+"#/queues")
	tb.sees("0 queues")
	if got := eval[string](tb, `import("/page/state.js").then(({ hearQueues, state }) => {
		const columns = ["database", "name", "ready"];
		hearQueues({ whole: false, columns, gone: [], rows: [[0, "jobs", 1]], more: 0 });
		hearQueues({ whole: false, columns, gone: [[0, "jobs"]], rows: [[0, "jobs", 2]], more: 0 });
		return [...state.queues.values()].map((q) => q.name + " " + q.ready).join(); })`); got != "jobs 2" {
		t.Errorf("the page has %q, want the queue that came", got)
	}
}

func TestAQueueThatIsGoneHasNoFigures(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.die("mails", "x", "mailbox full")
	tb := open(t, s.page+"#/queue?db=0&name=mails")
	const dead = "document.querySelector('.tiles .dead dd')?.textContent"
	tb.until(dead + " === '1'")
	s.ask("QDROP", "mails")
	tb.sees("No queue has this name")
	tb.until(dead + " === '–'")
	tb.goes("#/queue?db=0&name=never")
	tb.until("document.querySelector('h1').textContent === 'never' && !document.querySelector('.list').checkVisibility() && !document.querySelector('.tiles').checkVisibility()")
}

func TestAPlotOfOneMomentSpansAMinute(t *testing.T) {
	s := serve(t, daemon.Config{})
	tb := open(t, s.page+"#/log")
	tb.sees("Nothing has been told yet.")
	for _, past := range []string{"[]", "[[now, 1, 0, 0, 0]]", "[[now - 600000, 1, 0, 0, 0], [now, 1, 0, 0, 0]]"} {
		span := eval[float64](tb, `import("/page/plot.js").then(async ({ plots }) => {
			const now = Date.now(), [plot] = plots({ samples: `+past+` });
			document.querySelector("main").append(plot.element);
			plot.draw(300);
			await new Promise(requestAnimationFrame);
			const { min, max } = plot.chart.scales.x;
			plot.end();
			return max > Date.now() / 1000 - 60 && max < Date.now() / 1000 + 60 ? max - min : NaN; })`)
		if want := map[bool]float64{false: 60, true: 600}[strings.Contains(past, "600000")]; !(math.Abs(span-want) < 0.001) {
			t.Errorf("%s: the plot spans %v s, want the last %v", past, span, want)
		}
	}
}

func TestAPastBeginsWithTheHourOfTheServerAndGoesOnByItsGrain(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.ask("QPUSH", "mails", "x")
	tb := open(t, s.page+"#/log")
	tb.sees("Nothing has been told yet.")
	before := eval[string](tb, `import("/page/past.js").then(async ({ Past }) => {
		const past = await new Promise((done) => { const p = new Past(() => done(p)); });
		const [at, ...figures] = past.samples[0];
		return at <= performance.timeOrigin + 1000 ? figures.join(" ") : "none of before the page: " + at; })`)
	if want := "0 0 0 0 0 0 0 0"; before != want {
		t.Errorf("the first sample: %q", before)
	}
	got := eval[string](tb, `import("/page/past.js").then(({ Past }) => {
		const past = new Past(() => {}, { database: 0, name: "nobody" });
		const add = (at, ready, pushed, since) => past.add(at, { ready, delayed: 0, claimed: 0, dead: 0 }, { pushed, popped: 0, acked: 0 }, since);
		for (let i = 0; i <= 25; i++) add(1000 * i, i, 4 * i, 500);
		const ofNow = past.samples.map(([at, ready, , , , pushed, , , oldest]) => [at, ready, pushed, oldest].join(" "));
		add(3_615_000, 9, 100, 0);
		return [...ofNow, past.samples.length].join(", "); })`)
	if want := "0 0  0, 10000 10 4 9500, 20000 20 4 19500, 25000 25 4 24500, 2"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestAQueueThatNobodyTakesFromIsAProblemFromTheFirstMoment(t *testing.T) {
	s := serve(t, daemon.Config{})
	tb := open(t, s.page+"#/log")
	tb.sees("Nothing has been told yet.")
	for taken, want := range map[string]string{"now - 120000": "Nobody has taken packets for a minute or more: mails", "now - 1000": ""} {
		got := eval[string](tb, `Promise.all([import("/page/state.js"), import("/page/problems.js")]).then(([{ hearQueues }, { problems }]) => {
			const now = Date.now();
			const q = { database: 0, name: "mails", ready: 1, since: now - 900000, taken: `+taken+` };
			hearQueues({ whole: true, columns: Object.keys(q), rows: [Object.values(q)], gone: [] });
			return problems().map((p) => [p.text, ...p.links.map((l) => l.label)].join(": ")).join(); })`)
		if got != want {
			t.Errorf("taken %s: %q, want %q", taken, got, want)
		}
	}
}

func TestMarksOfPlotsAreRoundNumbers(t *testing.T) {
	s := serve(t, daemon.Config{})
	tb := open(t, s.page+"#/log")
	tb.sees("Nothing has been told yet.")
	for most, want := range map[string]string{
		"0, 0, 0": "0 1 | 0 0.5 1 | 0 ms 1 min", "3, 0.3, 90000": "0 1 2 3 | 0 0.5 1 | 0 ms 1 min",
		"2500000, 1250, 7200000": "0 1 M 2 M | 0 500 1 k | 0 ms 1 h 2 h",
	} {
		got := eval[string](tb, `import("/page/plot.js").then(async ({ plots }) => {
			const now = Date.now(), [ready, pushed, oldest] = [`+most+`];
			const samples = [now - 60000, now].map((at) => [at, ready, 0, 0, 0, pushed, 0, 0, oldest]);
			const all = plots({ samples });
			document.querySelector("main").append(...all.map((p) => p.element));
			all.forEach((p) => p.draw(300));
			await new Promise(requestAnimationFrame);
			const marks = all.map((p) => p.chart.axes[1]._values.join(" ")).join(" | ");
			all.forEach((p) => p.end());
			return marks; })`)
		if got != want {
			t.Errorf("%s: %q, want %q", most, got, want)
		}
	}
}

func TestAnAddressWithoutARealNameShowsAQueueThatIsNotThere(t *testing.T) {
	s := serve(t, daemon.Config{})
	tb := open(t, s.page+"#/queue?base64=!!!!")
	tb.sees("Consumers")
}
