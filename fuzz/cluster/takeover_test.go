package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// beginning begins something at a cell. What it returns judges it behind the death of the owner, by
// a client of nodes that live.
type beginning func(t *testing.T, c *cell) (judge func(t *testing.T, by *redis.Client))

// Each goes on at the next owner by itself.
func TestWhatBeganBeforeATakeoverGoesOnBehindIt(t *testing.T) {
	t.Parallel()
	c := onLoopback(t, build(t))
	owner := c.owner()
	live := c.others(owner)
	by := client.New(&redis.Options{Addr: live[0].redis + "," + live[1].redis, MaxRetries: -1, ReadTimeout: limit}).Redis()
	defer by.Close()
	names := []string{"holdfast work", "page", "go-redis", "redis-py", "redis/2", "redis6/3", "ioredis", "ioredis6"}
	begin := []beginning{workByCommand, lookAtPage}
	for _, name := range names[len(begin):] {
		begin = append(begin, bySentinel(name, by))
	}
	judge := make([]func(*testing.T, *redis.Client), len(names))
	for i := range names {
		judge[i] = begin[i](t, c)
	}
	c.kill(owner)
	for i, name := range names {
		t.Run(name, func(t *testing.T) { judge[i](t, by) })
	}
	t.Run("followers", func(t *testing.T) { c.followsFor(t, by) })
	for _, found := range c.judge.found() {
		t.Error(found)
	}
}

// workByCommand has the command work on a packet while the owner dies. It acknowledges it behind
// that by the claim that it had.
func workByCommand(t *testing.T, c *cell) func(*testing.T, *redis.Client) {
	s := &shift{t: t, done: make(map[string]int), by: make(map[string]string)}
	fifo := filepath.Join(t.TempDir(), "go on")
	must(t, syscall.Mkfifo(fifo, 0o600))
	release, err := os.OpenFile(fifo, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { _ = release.Close() })
	owner := c.owner()
	nodes := owner.redis
	for _, n := range c.others(owner) {
		nodes += "," + n.redis
	}
	end := s.program("holdfast work", owner, c.binary, "work", "work", "--redis", nodes, "--lease", "60s", "--", "sh", "-c", `cat; echo; read -r _ <"$0"`, fifo)
	to := redis.NewClient(&redis.Options{Addr: owner.redis})
	defer to.Close()
	must(t, to.LPush(t.Context(), "work", "0", "1", "2").Err())
	s.await("the command has a packet", func() bool { return len(s.by) == 1 })
	return func(t *testing.T, by *redis.Client) {
		_, err := fmt.Fprint(release, "\n\n\n")
		must(t, err)
		var left any
		if !await(limit, func() bool { // of packets that are claimed, too
			left, err = by.Do(t.Context(), "QLEN", "work").Result()
			return fmt.Sprint(left) == "0"
		}) {
			t.Errorf("%v packets are not acknowledged, %v", left, err)
		}
		if end(); len(s.by) != 3 {
			t.Errorf("%d packets were begun with, want 3", len(s.by))
		}
	}
}

// balance is a load balancer in front of the operator's ports: it asks for the owner.
func (c *cell) balance(t *testing.T) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	pass := func(conn net.Conn) {
		defer conn.Close()
		for _, n := range c.nodes {
			r, err := http.Get("http://" + n.admin + "/owner")
			if err != nil {
				continue
			}
			if _ = r.Body.Close(); r.StatusCode != http.StatusOK {
				continue
			}
			if to, err := net.Dial("tcp", n.admin); err == nil {
				defer to.Close()
				go func() { _, _ = io.Copy(to, conn) }() // ends with conn
				_, _ = io.Copy(conn, to)
			}
			return
		}
	}
	go func() { // ends with the listener
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			go pass(conn)
		}
	}()
	return l.Addr().String()
}

// lookAtPage has the page open in a browser. It shows what is new behind the takeover.
func lookAtPage(t *testing.T, c *cell) func(*testing.T, *redis.Client) {
	name, err := exec.LookPath("chromium")
	if err != nil {
		return func(t *testing.T, _ *redis.Client) { t.Skip("chromium is not installed: apt-get install chromium") }
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(name), chromedp.NoSandbox)
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	tab, _ := chromedp.NewContext(allocated)
	t.Cleanup(func() { _ = chromedp.Cancel(tab); stop() })
	shows := func(words string) func() bool {
		return func() bool {
			text, err := chromedp.Run(tab, chromedp.Evaluate[string]("document.body.innerText"))
			return err == nil && strings.Contains(text, words)
		}
	}
	page := "http://" + c.balance(t) + "/#/queues"
	if !await(limit, func() bool { return chromedp.Do(tab, chromedp.Navigate(page)) == nil }) || !await(limit, shows("work")) {
		t.Fatal("the page shows no queue")
	}
	return func(t *testing.T, by *redis.Client) {
		pushed(t, by, "behind")
		if !await(limit, shows("behind")) {
			t.Error("the page does not go on")
		}
	}
}

// pushed pushes a packet, by a connection that may be of the owner that died.
func pushed(t *testing.T, by *redis.Client, queue string) {
	var err error
	if !await(limit, func() bool {
		_, err = by.Do(t.Context(), "QPUSH", queue, "0-0", "UNIQUE", queue).Result()
		return err == nil
	}) {
		t.Fatal(err)
	}
}

// followsFor sees what a node that follows answers: by passing on, and by itself.
func (c *cell) followsFor(t *testing.T, by *redis.Client) {
	owner := c.owner()
	n := c.which("follows "+owner.name, func(n *node) bool {
		a, err := c.about(n)
		return err == nil && a.Role == "follower" && a.Owner == owner.name
	})
	var err error
	through := redis.NewClient(&redis.Options{Addr: n.redis})
	defer through.Close()
	var role any
	var info string
	await(limit, func() bool { // the owner may still begin to serve
		var unread error
		role, unread = through.Do(t.Context(), "ROLE").Result()
		info, err = through.Info(t.Context()).Result()
		return errors.Join(unread, err) == nil
	})
	if got := fmt.Sprint(role); got != "[master 0 []]" {
		t.Errorf("ROLE is %s", got)
	}
	for _, line := range []string{"role:master\r\n", fmt.Sprintf("process_id:%d\r\n", owner.cmd.Process.Pid)} {
		if !strings.Contains(info, line) {
			t.Errorf("INFO has no %q, %v:\n%s", line, err, info)
		}
	}
	pushed(t, by, "kept")
	if !await(limit, func() bool {
		upto, unknown := c.about(owner)
		a, err := c.about(n)
		return errors.Join(unknown, err) == nil && a.Batch >= upto.Batch
	}) {
		t.Fatal("it does not follow")
	}
	file, files, folder := n.folder+".backup", n.folder+".tar", n.folder+".restored"
	execute(t, c.binary, "backup", "--quiet", "--admin", n.admin, "--to", file)
	execute(t, c.binary, "backup", "--quiet", "--admin", n.admin, "--files", "--to", files)
	execute(t, c.binary, "restore", "--quiet", files, folder)
	execute(t, c.binary, "verify", "--quiet", folder)
	execute(t, c.binary, "verify", "--quiet", file)
	execute(t, c.binary, "dump", "--quiet", "--output", folder+".dump", folder)
	for _, name := range []string{file, folder + ".dump"} {
		if all, _, err := readDump(name); fmt.Sprint(all["kept"]) != "[0-0]" || err != nil {
			t.Errorf("%s has %v, %v; want 0-0", name, all["kept"], err)
		}
	}
}
