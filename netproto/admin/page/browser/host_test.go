package browser_test

import (
	"context"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/admin/page"
)

// twoOfThree is a cell of which one node does not answer.
type twoOfThree struct{ admin.Nodes }

func (twoOfThree) Status(context.Context) (admin.Cluster, error) {
	return admin.Cluster{By: "a", Majority: true, ClockMS: 61_000, Nodes: []admin.Node{
		{Name: "a", Role: "owner", Heard: true, Voter: true}, {Name: "b", Role: "follower", Heard: true, Voter: true, ClockMS: -2000}, {Name: "c", Voter: true},
	}}, nil
}

func TestTheServerIsShownToThoseWhoOperateIt(t *testing.T) {
	s := serve(t, daemon.Config{Version: "1.2.3", Users: []access.User{
		{Name: "root", Password: "right", Grants: access.Everything(), Operate: true},
		{Name: "ann", Password: "right", Grants: []access.Grant{{Glob: "jobs*", Rights: access.Look | access.Push}}},
	}, Settings: func() []page.Setting { return []page.Setting{{Name: "max-conns", Value: "17", From: "file"}} }, Nodes: twoOfThree{}})
	as := redis.NewClient(&redis.Options{Addr: s.config.Redis, Username: "ann", Password: "right", ClientName: "mailer"})
	defer as.Close()
	if err := as.Do(t.Context(), "QPUSH", "jobs", "x").Err(); err != nil {
		t.Fatal(err)
	}
	operator := redis.NewClient(&redis.Options{Addr: s.config.Redis, Username: "root", Password: "right"})
	defer operator.Close()
	if err := operator.Do(t.Context(), "QPURGE", "jobs").Err(); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	enter := func(user string) *tab {
		tb := open(t, s.page+"#/server")
		tb.until("document.querySelector('.login')")
		tb.run(chromedp.SetValue("input[name=user]", user), chromedp.SetValue("input[name=password]", "right"))
		tb.click("Log in")
		tb.until("document.title.endsWith(' · " + host + " · Holdfast')")
		return tb
	}
	tb := enter("root")
	for _, words := range []string{"1.2.3", "mailer", "qpush", "Up since", "qpurge", "Settings in force", "max-conns\t17\tfile", "Nodes: 0 may be lost now", "a\towner\tyes", "c\tsilent\tyes", "The clock of the cell is 1 min 1 s ahead of that of node a.", "The clock of node b is 2 s behind"} {
		tb.sees(words)
	}
	tb.until("[...document.querySelectorAll('tr')].some((tr) => tr.innerText.includes('qpurge') && tr.querySelector('a')?.innerText === 'jobs')")
	tb.run(chromedp.EmulateViewport(360, 800))
	if width := eval[int](tb, "document.documentElement.scrollWidth"); width > 360 {
		t.Errorf("on a phone the page is %d px wide, want 360", width)
	}
	tb.goes("#/")
	tb.sees("Bytes in queues")
	tb.goes("#/server")
	tb.sees("Audit")
	if n := eval[int](tb, "import('/page/server.js').then(({ audit }) => audit()).then((lines) => lines.length)"); n != 1 {
		t.Errorf("the audit has %d lines, want that of the purge alone", n)
	}
	tb = enter("ann")
	tb.sees("Overview")
	if eval[bool](tb, `document.querySelector('nav [href="#/server"]').checkVisibility()`) {
		t.Error("a user who does not operate the server is offered it")
	}
}
