package browser_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

// patience is how long a test waits for something to show.
const patience = 30 * time.Second

// chromium is one browser for all tests; nil until the first one needs it.
var chromium context.Context

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if chromium != nil {
		_ = chromedp.Cancel(chromium)
	}
	os.Exit(code)
}

func browser(t *testing.T) context.Context {
	t.Helper()
	if chromium != nil {
		return chromium
	}
	name, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(name), chromedp.NoSandbox)
	allocated, _ := chromedp.NewExecAllocator(context.Background(), options...)
	chromium, _ = chromedp.NewContext(allocated)
	if err := chromedp.Do(chromium); err != nil {
		t.Fatal(err)
	}
	return chromium
}

// server is a whole server in this process.
type server struct {
	*redis.Client
	t      *testing.T
	config daemon.Config
	page   string // its address
	stop   func()
}

func serve(t *testing.T, c daemon.Config) *server {
	t.Helper()
	browser(t)
	c.Data, c.Redis, c.Admin = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	s := &server{t: t, config: c}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *server) start() {
	s.t.Helper()
	listening := make(chan [2]string, 8)
	s.config.Listening = func(protocol string, addr net.Addr) { listening <- [2]string{protocol, addr.String()} }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Run(ctx, s.config) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	for range 2 {
		select {
		case l := <-listening:
			if l[0] == "admin" {
				s.page, s.config.Admin = "http://"+l[1]+"/", l[1]
			} else {
				s.config.Redis = l[1]
			}
		case err := <-ended:
			s.t.Fatal(err)
		}
	}
	s.Client = redis.NewClient(&redis.Options{Addr: s.config.Redis, Protocol: 3, Password: s.config.RedisPassword})
	s.t.Cleanup(func() { s.Client.Close() })
}

// ask carries out a command.
func (s *server) ask(words ...any) any {
	s.t.Helper()
	reply, err := s.Do(context.Background(), words...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		s.t.Fatalf("%.100v: %v", words, err)
	}
	return reply
}

// die pushes a packet into a queue, and has it die for a reason. It returns the packet's id.
func (s *server) die(queue, payload, reason string) string {
	s.t.Helper()
	id := s.ask("QPUSH", queue, payload, "PRIO", 1).(string)
	claimed := s.ask("QCLAIM", queue, "CONSUMER", "w1").([]any)[0].(map[any]any)
	s.ask("QNACK", queue, id, claimed["token"], "DEAD", "REASON", reason)
	return id
}

func (s *server) state(queue, id string) string {
	s.t.Helper()
	packet, _ := s.ask("QSHOW", queue, id).(map[any]any)
	state, _ := packet["state"].(string)
	return state
}

// tab is a page that is open in the browser, without what others have stored there.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu    sync.Mutex
	wrong []string // what no page may do: ask other hosts, break its policy, fail, open a dialog
	bytes float64  // that were received
}

// open opens a page. Whatever the test is for, the page asks no other host, breaks no policy, and
// has no error.
func open(t *testing.T, address string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser(t), chromedp.WithNewBrowserContext())
	tb := &tab{t: t, ctx: ctx}
	host := address[:strings.Index(address, "/#")+1]
	if err := chromedp.Listen(ctx, func(e any) { tb.hear(e, host) }); err != nil {
		t.Fatal(err)
	}
	call(tb, network.Enable, network.EnableParams{})
	call(tb, log.Enable, cdp.Empty{})
	call(tb, runtime.Enable, cdp.Empty{})
	tb.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(address))
	t.Cleanup(func() {
		if t.Failed() {
			v, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
			t.Logf("the page says:\n%.3000s", v)
		}
		cancel()
		tb.mu.Lock()
		defer tb.mu.Unlock()
		for _, what := range tb.wrong {
			t.Error(what)
		}
	})
	return tb
}

func (tb *tab) hear(e any, host string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	switch e := e.(type) {
	case *network.EventRequestWillBeSent:
		if at := e.Request.URL; !strings.HasPrefix(at, host) && !strings.HasPrefix(at, "data:") && !strings.HasPrefix(at, "blob:") {
			tb.wrong = append(tb.wrong, "the page asked for "+at)
		}
	case *network.EventDataReceived:
		tb.bytes += float64(e.EncodedDataLength)
	case *log.EventEntryAdded:
		if e.Entry.Source == "security" || strings.Contains(e.Entry.Text, "Content Security Policy") {
			tb.wrong = append(tb.wrong, "policy: "+e.Entry.Text)
		}
	case *runtime.EventExceptionThrown:
		tb.wrong = append(tb.wrong, fmt.Sprintf("exception: %+v", e.ExceptionDetails))
	case *page.EventJavascriptDialogOpening:
		tb.wrong = append(tb.wrong, "a script ran: "+e.Message)
	}
}

// call gives the browser a command of its protocol.
func call[P, R any](tb *tab, command cdp.Command[P, R], params P) {
	tb.t.Helper()
	if _, err := chromedp.Call(tb.ctx, command, params); err != nil {
		tb.t.Fatalf("the browser: %v", err)
	}
}

func (tb *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		tb.t.Fatalf("the browser: %v", err)
	}
}

// eval evaluates an expression in the page, and waits for it if it is a promise.
func eval[T any](tb *tab, expression string) T {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tb.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

func (tb *tab) text() string { return eval[string](tb, "document.body.innerText") }

// until waits until an expression is true. Until then it may throw: a part of the page that it
// reads may be drawn a moment later.
func (tb *tab) until(expression string) {
	tb.t.Helper()
	eval[bool](tb, "new Promise((done) => { const look = () => { try { if ("+expression+") return done(true); } catch {} setTimeout(look, 20); }; look(); })")
}

// goes shows another view.
func (tb *tab) goes(hash string) {
	tb.t.Helper()
	eval[any](tb, fmt.Sprintf("location.hash = %q", hash))
}

// sees waits until the page shows some words.
func (tb *tab) sees(words string) {
	tb.t.Helper()
	tb.until(fmt.Sprintf("document.body.innerText.includes(%q)", words))
}

// click clicks on the link or button with some words, as a mouse does. It scrolls that to the
// middle before: the head of the page covers what is at the top.
func (tb *tab) click(words string) {
	tb.t.Helper()
	at := fmt.Sprintf(`//*[self::a or self::button][normalize-space()=%q and not(@disabled)]`, words)
	for tries, hit := 0, false; !hit && tries < 5; tries++ { // what is drawn anew meanwhile may be elsewhere
		tb.run(chromedp.WaitVisible(at))
		eval[any](tb, fmt.Sprintf(`document.evaluate(%q, document, null, 9).singleNodeValue?.scrollIntoView({block: "center"});
			hit = false;
			document.addEventListener("click", (e) => { hit = e.target.closest("a, button")?.textContent.trim().replace(/\s+/g, " ") === %q }, {capture: true, once: true}), null`, at, words))
		tb.run(chromedp.Click(at))
		hit = eval[bool](tb, "hit")
	}
}

// types writes into the field that has the focus.
func (tb *tab) types(keys string) {
	tb.t.Helper()
	tb.run(chromedp.KeyEvent(keys))
}

// tabTo presses Tab until the focus is on the link, button or field with some words.
func (tb *tab) tabTo(words string) {
	tb.t.Helper()
	for range 80 {
		if eval[string](tb, "(e => (e.getAttribute('aria-label') || e.innerText || '').trim())(document.activeElement)") == words {
			return
		}
		tb.types("\t")
	}
	tb.t.Fatalf("80 times Tab lead to no %q", words)
}
