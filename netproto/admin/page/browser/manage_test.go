package browser_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

func TestAUserIsOfferedWhatItMay(t *testing.T) {
	s := serve(t, daemon.Config{Users: []access.User{
		{Name: "ann", Password: "right", Grants: []access.Grant{{Glob: "*", Rights: access.Look | access.Push}, {Glob: "jobs*", Rights: access.Manage}}},
		{Name: "worker", Password: "right", Grants: []access.Grant{{Glob: "*", Rights: access.Take | access.Push}}},
	}})
	const offered = "document.querySelector('.actions')?.checkVisibility() === "
	enter := func(user string) *tab {
		tb := open(t, s.page+"#/queues")
		tb.until("document.querySelector('.login')")
		tb.run(chromedp.SetValue("input[name=user]", user), chromedp.SetValue("input[name=password]", "right"))
		tb.click("Log in")
		return tb
	}
	as := redis.NewClient(&redis.Options{Addr: s.config.Redis, Username: "ann", Password: "right"})
	defer as.Close()
	ids := make(map[string]string)
	for _, queue := range []string{"jobs", "mails"} {
		ids[queue] = as.Do(t.Context(), "QPUSH", queue, "x").Val().(string)
	}
	tb := enter("ann")
	tb.sees("2 queues")
	for queue, may := range map[string]string{"jobs": "true", "mails": "false", "none": "false"} {
		tb.goes("#/queue?db=0&name=" + queue)
		tb.until("document.querySelector('h1').textContent === '" + queue + "' && " + offered + may)
		if id, there := ids[queue]; there {
			tb.goes("#/packet?db=0&name=" + queue + "&id=" + id)
			tb.until("document.querySelector('h1').textContent === 'Packet " + id + "' && " + offered + may)
		}
	}
	tb = enter("worker")
	tb.goes("#/queue?db=0&name=jobs")
	tb.sees("Your user may not look at this queue.")
	tb.goes("#/queues")
	tb.sees("Your user may look at no queue.")
}

func TestAButtonThatHasNothingToDoIsOff(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.ask("QSET", "mails", "lease", 60_000)
	tb := open(t, s.page+"#/queue?db=0&name=mails")
	tb.until("[...document.querySelectorAll('.actions button:disabled')].map((b) => b.title).join() === 'No packet is dead.,No packet is claimed.'")
	s.die("mails", "x", "no such address")
	s.ask("QPUSH", "mails", "x", "PRIO", 1)
	s.ask("QCLAIM", "mails")
	tb.until("!document.querySelector('.actions button:disabled')")
}

func TestTickedPacketsAreRetriedMovedAndDeleted(t *testing.T) {
	s := serve(t, daemon.Config{})
	var ids []string
	for i := range 4 {
		ids = append(ids, s.die("mails", fmt.Sprint("mail ", i), "no such address"))
	}
	ready := s.ask("QPUSH", "mails", "x").(string)
	tb := open(t, s.page+"#/queue?db=0&name=mails")
	tick := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			tb.run(chromedp.Click(fmt.Sprintf("input[aria-label='Tick packet %s']", id)))
		}
	}
	do := func(word, said string) {
		t.Helper()
		tb.click(word + " ticked…")
		tb.until("document.querySelector('dialog')")
		switch word {
		case "Move":
			tb.run(chromedp.Click("dialog input[name=to]"))
			tb.types("letters")
		case "Delete":
			tb.run(chromedp.Click("#typed"))
			tb.types("mails")
		}
		tb.run(chromedp.Click("dialog button[type=submit]:enabled"))
		tb.sees(said)
		tb.click("Close")
		tb.until("!document.querySelector('dialog')")
	}
	tb.sees("Page 1, 5 packets.")
	tick(ids[0], ready)
	tb.sees("2 ticked")
	do("Retry", "1 packet was made ready again. Only dead packets are retried.")
	tb.until("[...document.querySelectorAll('.state.dead')].length === 3")
	tb.sees("2 ticked") // they are still there
	tick(ids[0], ready)
	tb.until("!document.querySelector('.ticked').checkVisibility()")
	tick(ids[1], ids[2])
	do("Move", "2 packets were moved.")
	tb.sees("Page 1, 3 packets.")
	tick(ids[3])
	do("Delete", "1 packet was deleted.")
	tb.sees("Page 1, 2 packets.")
	for i, want := range []string{"mails ready", "letters dead", "letters dead", ""} {
		queue, state, _ := strings.Cut(want, " ")
		if got := s.state(cmp.Or(queue, "mails"), ids[i]); got != state {
			t.Errorf("packet %d is %q, want %q", i, got, want)
		}
	}
	tb.run(chromedp.Click("input[aria-label='Tick all packets of this page']"))
	tb.sees("2 ticked")
	tb.until("document.querySelector('.ticked button:disabled').title === 'None of them is dead.'")
}

func TestADelayedPacketIsRunNow(t *testing.T) {
	s := serve(t, daemon.Config{})
	id := s.ask("QPUSH", "mails", "x", "DELAY", 600_000).(string)
	tb := open(t, s.page+"#/packet?db=0&name=mails&id="+id)
	tb.click("Run now…")
	tb.click("Run now")
	tb.sees("The packet is ready.")
	tb.click("Close")
	tb.sees("Next in line")
	if strings.Contains(tb.text(), "Run now") {
		t.Error("a packet that is ready can be run")
	}
}

func TestClaimsEndOnceTheNameIsTyped(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.ask("QPUSH", "mails", "x")
	s.ask("QCLAIM", "mails", "LEASE", 600_000)
	tb := open(t, s.page+"#/queue?db=0&name=mails")
	tb.click("End claims…")
	tb.sees("1 claim would be ended.")
	tb.sees("Work that goes on is done twice. Type mails to confirm")
	tb.until("document.querySelector('dialog button[type=submit]:disabled')")
	tb.run(chromedp.Click("#typed"))
	tb.types("mails")
	tb.click("End claims")
	tb.sees("1 claim was ended.")
}

func TestPacketsAreCancelled(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.ask("QMPUSH", "mails", 2, "a", "b")
	s.ask("QCLAIM", "mails", "LEASE", 600_000)
	tb := open(t, s.page+"#/packet?db=0&name=mails&id=1")
	tb.click("Cancel packet…")
	tb.run(chromedp.Click("#typed"))
	tb.types("mails")
	tb.click("Cancel packet")
	tb.sees("0 packets were deleted, 1 will be gone when the claim ends.")
	tb.click("Close")
	tb.sees("it was cancelled, and is gone when the claim ends")
	if strings.Contains(tb.text(), "Cancel packet") {
		t.Error("a packet that was cancelled can be cancelled")
	}
	tb = open(t, s.page+"#/queue?db=0&name=mails")
	tb.sees("claimed cancelled")
	tb.run(chromedp.Click("input[aria-label='Tick all packets of this page']"))
	tb.click("Cancel ticked…")
	tb.run(chromedp.Click("#typed"))
	tb.types("mails")
	tb.click("Cancel packets")
	tb.sees("1 packet was deleted, 1 will be gone when the claim ends.")
	tb.click("Close")
	tb.sees("Page 1, 1 packet.")
}

func TestWhatCannotBeUndoneAsksForTheName(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.ask("QMPUSH", "mails", 3, "a", "b", "c")
	tb := open(t, s.page+"#/queue?db=0&name=mails")
	tb.click("Delete…")
	tb.sees("3 packets would be deleted.")
	const ready = "!document.querySelector('dialog button[type=submit]').disabled"
	tb.run(chromedp.Click("#typed"))
	tb.types("mail")
	if eval[bool](tb, ready) {
		t.Error("the button works before the name is there")
	}
	tb.types("s")
	tb.until(ready)
	tb.click("Delete")
	tb.sees("3 packets were deleted.")
	if strings.Contains(tb.text(), "cannot be undone") {
		t.Error("the dialog still asks for the name when it is done")
	}
	if got := s.ask("QLEN", "mails"); got != int64(0) {
		t.Errorf("%v packets are left, want 0", got)
	}
}

func TestADialogAsksNoMoreForWhatItHas(t *testing.T) {
	s := serve(t, daemon.Config{})
	id := s.ask("QPUSH", "mails", "x").(string)
	tb := open(t, s.page+"#/packet?db=0&name=mails&id="+id)
	tb.click("Move…")
	tb.sees("Name the queue to move to.")
	tb.run(chromedp.Click("dialog input[name=to]"))
	tb.types("letters")
	tb.until("document.querySelector('dialog button[type=submit]:enabled')")
	if strings.Contains(tb.text(), "Name the queue to move to.") {
		t.Error("the dialog asks for a name that is there")
	}
}

func TestDeadPacketsAreRedrivenByKeysAlone(t *testing.T) {
	s := serve(t, daemon.Config{})
	id := s.die("mails", "to ann", "no such address")
	tb := open(t, s.page+"#/")
	tb.sees("1 packet is dead")
	tb.tabTo("mails")
	tb.types(kb.Enter)
	tb.sees("no such address")
	tb.tabTo("Retry dead…")
	tb.types(kb.Enter)
	tb.sees("1 packet would be ready again.")
	tb.types(kb.Escape)
	tb.until("!document.querySelector('dialog') && document.activeElement.innerText === 'Retry dead…'")
	if got := s.state("mails", id); got != "dead" {
		t.Fatalf("after Escape the packet is %s, want dead", got)
	}
	tb.types(kb.Enter)
	tb.sees("1 packet would be ready again.")
	tb.tabTo("Retry")
	tb.types(kb.Enter)
	tb.sees("1 packet is ready again.")
	tb.types(kb.Enter) // the focus is on Close
	tb.until("!document.querySelector('dialog')")
	if got := s.state("mails", id); got != "ready" {
		t.Errorf("the packet is %s, want ready", got)
	}
}

func TestAQueueThatIsEmptiedKeepsItsButtonsAndItsPlots(t *testing.T) {
	s := serve(t, daemon.Config{})
	s.ask("QPUSH", "mails", "x")
	tb := open(t, s.page+"#/queue?db=0&name=mails")
	tb.until("document.querySelector('.actions')?.checkVisibility() && document.querySelector('.tiles .ready dd').textContent === '1'")
	s.ask("QPOP", "mails")
	tb.until("document.querySelector('.tiles .ready dd').textContent === '–'")
	if !eval[bool](tb, "document.querySelector('.actions').checkVisibility()") {
		t.Error("the buttons are gone with the last packet")
	}
	got := eval[string](tb, `import("/page/past.js").then(({ Past }) => {
		const past = new Past(() => {}, { database: 0, name: "nobody" }), q = { ready: 1, delayed: 0, claimed: 0, dead: 0 }, none = { ready: 0, delayed: 0, claimed: 0, dead: 0 };
		past.add(0, q, { pushed: 5, popped: 0, acked: 0 }, 0);
		past.add(10_000, none);
		past.add(20_000, q, { pushed: 9, popped: 0, acked: 0 }, 0);
		past.add(30_000, q, { pushed: 19, popped: 0, acked: 0 }, 0);
		return past.samples.map(([at, ready, , , , pushed]) => [at, ready, pushed].join(" ")).join(", "); })`)
	if want := "0 1 , 10000 0 , 20000 1 , 30000 1 1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLoginIsNeededWithUsers(t *testing.T) {
	s := serve(t, daemon.Config{RedisPassword: "geheim", Users: []access.User{
		{Name: "ann.of.the.night.shift", Password: "right", Grants: []access.Grant{{Glob: "jobs*", Rights: access.Look}}},
	}})
	s.ask("QPUSH", "jobs", "x")
	s.ask("QPUSH", "secret", "x")
	tb := open(t, s.page+"#/queues")
	log := func(password string) {
		tb.until("document.querySelector('.login')")
		tb.run(chromedp.SetValue("input[name=user]", "ann.of.the.night.shift"), chromedp.SetValue("input[name=password]", password))
		tb.click("Log in")
	}
	log("wrong")
	tb.until("document.querySelector('.login .problem')")
	log("right")
	tb.sees("1 queue")
	tb.sees("ann.of.the.night.shift")
	tb.run(chromedp.EmulateViewport(360, 800))
	if height := eval[float64](tb, "document.querySelector('.who button').offsetHeight"); height > 40 {
		t.Errorf("on a phone the button for the logout is %v px high, want one line", height)
	}
	tb.run(chromedp.EmulateViewport(1280, 900))
	tb.click("jobs")
	tb.sees("Your user may look at this queue and change nothing.")
	if eval[bool](tb, "document.querySelector('.actions').checkVisibility()") {
		t.Error("the user is offered what it may not do")
	}
	tb.goes("#/")
	tb.sees("Bytes in queues")
	if got := tb.text(); strings.Contains(got, "Disk") {
		t.Errorf("a user of one queue is told of the server: %q", got)
	}
	tb.click("Log out")
	tb.until("document.querySelector('.login')")
	if got := tb.text(); strings.Contains(got, "jobs") {
		t.Errorf("after the logout the page still says %q", got)
	}
}
