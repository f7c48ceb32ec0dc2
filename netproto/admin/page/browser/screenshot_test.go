package browser_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

var screenshots = flag.String("screenshots", "", "folder for pictures of the page with live load")

// TestScreenshots draws each view, narrow and wide, by day and by night.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("no -screenshots folder is given")
	}
	if err := os.MkdirAll(*screenshots, 0o755); err != nil {
		t.Fatal(err)
	}
	s := serve(t, daemon.Config{Version: "0.5.0"})
	id := s.furnish()
	stop := s.load()
	defer stop()
	tb := open(t, s.page+"#/")
	time.Sleep(75 * time.Second) // plots begin with the server
	for _, v := range []struct{ name, hash string }{
		{"overview", "#/"}, {"queues", "#/queues"}, {"queue", "#/queue?db=0&name=mails&state=dead"}, {"busy", "#/queue?db=0&name=orders.eu"},
		{"packet", "#/packet?db=0&name=mails&id=" + id}, {"log", "#/log"}, {"server", "#/server"}, {"found", "#/queue?db=0&name=mails&find=order-7"},
	} {
		tb.goes(v.hash)
		time.Sleep(2 * time.Second) // a few events
		tb.shoot(v.name, "header")
	}
	tb.goes("#/queue?db=0&name=mails&state=dead")
	tb.run(chromedp.Click("input[aria-label='Tick all packets of this page']"))
	tb.shoot("ticked", ".list h2")
	tb.click("Delete…")
	tb.sees("would be deleted.")
	tb.shoot("dialog", "header")
}

// shoot writes what the tab shows, from an element on, into a file for each width and scheme.
func (tb *tab) shoot(name, from string) {
	tb.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		call(tb, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		for _, width := range []int64{390, 1280} {
			tb.run(chromedp.EmulateViewport(width, 900))
			eval[any](tb, fmt.Sprintf("scrollTo(0, document.querySelector(%q).offsetTop - 70)", from))
			time.Sleep(1200 * time.Millisecond) // for the plots to be drawn anew
			picture, err := chromedp.Call(tb.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{})
			if err == nil {
				err = os.WriteFile(filepath.Join(*screenshots, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), picture.Data, 0o644)
			}
			if err != nil {
				tb.t.Fatal(err)
			}
		}
	}
}

// furnish fills a server with what an operator may meet, and returns the id of a dead packet.
func (s *server) furnish() (id string) {
	for i := range 3 {
		id = s.die("mails", fmt.Sprintf(`{"to":"ann%d@example.com","subject":"Welcome","body":"<b>Hello</b> Ann","retry":{"times":%d,"until":null}}`, i, i), "550 mailbox of ann is full")
	}
	s.die("thumbnails", "GIF89a\x00\xff\xfe", "not a picture")
	for i := range 120 {
		s.ask("QPUSH", "mails", fmt.Sprintf("to reader number %d", i), "TAG", "class", []string{"low", "high"}[i%2], "TAG", "tenant", "acme", "KEY", fmt.Sprint("order-", i/4))
	}
	s.ask("QSET", "orders.eu", "bound", 5000, "max-attempts", 3)
	s.ask("QSET", "webhooks", "pause-out", "yes")
	s.ask("QPUSH", "webhooks", "x")
	s.ask("QSET", "invoices", "bound", 20, "alert-age", 5000)
	for range 20 {
		s.ask("QPUSH", "invoices", "x")
	}
	s.Do(context.Background(), "QPUSH", "invoices", "beyond")
	s.ask("QPUSH", "reports", "monthly", "DELAY", 3_600_000)
	for i := range 40 {
		s.ask("QPUSH", fmt.Sprintf("tenant-%02d", i), "x")
	}
	return id
}

// load works on queues until stop is called.
func (s *server) load() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, queue := range []string{"orders.eu", "orders.us", "search-index"} {
		all.Go(func() {
			for ctx.Err() == nil {
				s.Do(ctx, "QMPUSH", queue, 3, `{"order":1}`, `{"order":2}`, `{"order":3}`, "TAG", "class", "high")
				time.Sleep(time.Duration(2+rand.IntN(12)) * time.Millisecond)
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				packets, _ := s.Do(ctx, "QCLAIM", queue, "COUNT", 4, "CONSUMER", "worker-"+queue, "BLOCK", 50).Slice()
				time.Sleep(time.Duration(1+rand.IntN(14)) * time.Millisecond)
				for _, p := range packets {
					p := p.(map[any]any)
					s.Do(ctx, "QACK", queue, p["id"], p["token"])
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}
