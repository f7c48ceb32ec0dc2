package browser_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

func TestAPacketIsFoundByItsIDKeyOrProducer(t *testing.T) {
	s := serve(t, daemon.Config{})
	for i := range 1200 {
		s.ask("QPUSH", "mails", "x", "KEY", fmt.Sprint("k", i))
	}
	id := s.ask("QPUSH", "mails", "y", "KEY", "ann", "PRODUCER", "shop").(string)
	number := s.ask("QPUSH", "mails", "z", "KEY", "4711").(string)
	tb := open(t, s.page+"#/queue?db=0&name=mails")
	find := func(words string) {
		t.Helper()
		tb.goes("#/queue?db=0&name=mails")
		tb.sees("Page 1, 20 packets")
		tb.run(chromedp.Click("input[aria-label='Find packets by id, key, producer or last error']"))
		tb.types(words + kb.Enter)
	}
	find(id)
	tb.until("document.querySelector('h1').textContent === 'Packet " + id + "'")
	for words, want := range map[string]string{"ann": id, "shop": id, "4711": number} {
		find(words)
		tb.sees("1 packet with the id, key, producer or last error " + words)
		tb.until("document.querySelector('.packets td a').textContent === '" + want + "'")
	}
	find("nobody")
	tb.sees("No packet has the id, key, producer or last error nobody")
	tb.click("Show all")
	tb.sees("Page 1, 20 packets")
}

func TestIDsAndPayloadsAreCopied(t *testing.T) {
	s := serve(t, daemon.Config{})
	id := s.ask("QPUSH", "mails", `{"to":"ann"}`).(string)
	tb := open(t, s.page+"#/packet?db=0&name=mails&id="+id)
	tb.sees("Copy payload")
	eval[any](tb, `Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { window.copied = text; } } }), null`)
	for button, want := range map[string]string{"Copy id": id, "Copy payload": `{"to":"ann"}`} {
		tb.click(button)
		tb.sees("Copied")
		if got := eval[string](tb, "window.copied"); got != want {
			t.Errorf("%s gives %q, want %q", button, got, want)
		}
		tb.until("!document.body.innerText.includes('Copied')")
	}
}

func TestDeadPacketsAreGroupedByTheirLastError(t *testing.T) {
	s := serve(t, daemon.Config{})
	for _, reason := range []string{"timeout: a", "550: mailbox full", "timeout: b", "timeout", "<b>x</b>"} {
		s.die("mails", "x", reason)
	}
	tb := open(t, s.page+"#/queue?db=0&name=mails&state=dead")
	tb.sees("By their last error: timeout (3), ")
	tb.sees("550 (1)")
	tb.sees("<b>x</b> (1)")
	for error, n := range map[string]string{"550": "1 packet", "timeout": "3 packets"} {
		tb.click(error)
		tb.sees(n + " with the id, key, producer or last error " + error)
		tb.sees("By their last error")
	}
	tb.click("ready")
	tb.until("!document.querySelector('.errors').textContent")
}

func TestCountsOfErrorsAreThoseOfTheListAlsoOnItsSecondPage(t *testing.T) {
	s := serve(t, daemon.Config{})
	for i := range 30 {
		s.die("mails", "x", fmt.Sprint("timeout: ", i))
	}
	tb := open(t, s.page+"#/queue?db=0&name=mails&state=dead")
	tb.sees("By their last error: timeout (30)")
	tb.click("Next page")
	tb.sees("Page 2, 10 packets")
	s.die("mails", "x", "550")
	tb.click("Refresh")
	tb.sees("550 (1)")
	// The next page is asked for while the errors of all packets are counted: that goes on.
	eval[any](tb, `(() => {
		const asked = fetch;
		window.fetch = async (...a) => { if (String(a[1]?.body).includes('"500"') || String(a[1]?.body).includes(',500]')) await new Promise((done) => { window.goOn = done; }); return asked(...a); };
		return null;
	})()`)
	s.die("mails", "x", "550")
	tb.click("First page")
	tb.sees("Page 1, 20 packets")
	tb.click("Refresh")
	tb.until("window.goOn")
	tb.click("Next page")
	tb.sees("Page 2, 12 packets")
	eval[any](tb, "window.goOn(), null")
	tb.sees("550 (2)")
	// Those of another list are never shown, also where its own cannot be counted.
	eval[any](tb, `(() => {
		const asked = fetch;
		window.fetch = (...a) => String(a[1]?.body).includes("500") ? Promise.reject(new Error("failed")) : asked(...a);
		return null;
	})()`)
	tb.goes("#/queue?db=0&name=mails&state=dead&tags=a=1")
	tb.sees("No packets are dead with these tags")
	tb.until("!document.querySelector('.errors').textContent")
}

func TestPacketsOfOneShareAreListed(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.ask("QSET", "mails", "share-by", "tag:tenant")
	for i, tenant := range []string{"acme corp", "other", "acme corp"} {
		s.ask("QPUSH", "mails", "x", "TAG", "tenant", tenant, "TAG", "n", i)
	}
	tb := open(t, s.page+"#/queue?db=0&name=mails&state=ready&tags="+url.QueryEscape(`share:"acme corp"`))
	tb.sees("2 packets")
	tb.goes("#/queue?db=0&name=mails&state=ready&tags=" + url.QueryEscape(`n>0 share:"acme corp"`))
	tb.sees("1 packet")
}

func TestAKeyOfDigitsThatIsNoIDIsFound(t *testing.T) {
	s := serve(t, daemon.Config{})
	keys := []string{"0012", "99999999999999999999", "9999999999999999999"}
	for _, key := range keys {
		s.ask("QPUSH", "mails", "x", "KEY", key)
	}
	tb := open(t, s.page+"#/queues")
	tb.sees("1 queue")
	for _, key := range keys {
		tb.goes("#/queue?db=0&name=mails&find=" + key)
		tb.sees("1 packet with the id, key, producer or last error " + key)
	}
}
