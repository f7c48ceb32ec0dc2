package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// fault is what happens to a cell under a load. All nodes run before it and behind it.
type fault struct {
	name string
	do   func(c *cell, l *load)
}

// faults are those of processes and folders, for which loopback is enough.
func faults() []fault {
	return []fault{
		{"kill -9 of the owner", func(c *cell, _ *load) { c.killed(c.owner()) }},
		{"kill -9 of a follower", func(c *cell, _ *load) { c.killed(one(c.others(c.owner()))) }},
		{"kill -9 of etcd's leader", func(c *cell, _ *load) { c.killed(c.leader()) }},
		{"kill -9 of two", func(c *cell, _ *load) { c.killed(c.others(one(c.nodes))...) }},
		{"kill -9 of all", func(c *cell, _ *load) { c.killed(c.nodes...) }},
		{"all lose power", losePower},
		{"the owner is stopped past its lease", stopOwner},
		{"the claim is deleted by hand", deleteClaim},
		{"restart of all in turn", func(c *cell, _ *load) { c.restart(c.nodes...) }},
		{"the owner hands over", handOver},
		{"a node loses its folder", wipe},
		{"a node loses its folder while another is away", wipeOneOfTwo},
		{"a follower is away for longer than the log lasts", lag},
		{"a node starts from an old image", oldImage},
	}
}

// longFaults take minutes, or a program whose clock can be off.
func longFaults() []fault {
	return []fault{
		{"a clock is 31 s ahead", func(c *cell, l *load) { c.off(l, 31*time.Second, 0) }},
		{"a clock is five minutes behind", func(c *cell, l *load) { c.off(l, -5*time.Minute, 0) }},
		{"a clock is an hour ahead", func(c *cell, l *load) { c.off(l, time.Hour, 0) }},
		{"a clock is set an hour ahead", func(c *cell, l *load) { c.off(l, time.Hour, 20*time.Second) }},
		{"a clock is set an hour back", func(c *cell, l *load) { c.off(l, -time.Hour, 20*time.Second) }},
		{"kill -9 of the owner of 3 M packets", deep},
		{"etcd is full, and the owner is killed", fullQuota},
	}
}

func one(nodes []*node) *node { return nodes[rand.IntN(len(nodes))] }

func pause(most time.Duration) { time.Sleep(rand.N(most)) }

// killed kills nodes at once, and starts them again in any order.
func (c *cell) killed(nodes ...*node) {
	c.kill(nodes...)
	pause(3 * time.Second)
	for _, i := range rand.Perm(len(nodes)) {
		c.start(nodes[i])
		pause(time.Second)
	}
}

// stopOwner stops the owner until another one has taken over and answers.
func stopOwner(c *cell, l *load) {
	owner := c.owner()
	_ = owner.cmd.Process.Signal(syscall.SIGSTOP)
	c.owner() // another one
	l.serves(200)
	pause(2 * time.Second)
	_ = owner.cmd.Process.Signal(syscall.SIGCONT)
}

// losePower ends all nodes, with what no promise needs them to have on disk: the journal of a node
// keeps what etcd has. One that has more in tables than others may lose its folder, too.
func losePower(c *cell, _ *load) {
	first := one(c.others(c.owner()))
	c.restart(first)            // at its end it puts all into tables
	time.Sleep(3 * time.Second) // the log is cut each two
	c.kill(c.nodes...)
	for _, n := range c.nodes {
		names, _ := filepath.Glob(filepath.Join(n.folder, "journal", "*"))
		for _, name := range names {
			info, err := os.Stat(name)
			must(c.t, err)
			left := rand.Int64N(info.Size()+1) >> rand.IntN(16) &^ 511         // a device writes a sector whole
			must(c.t, os.Truncate(name, left), os.Truncate(name, info.Size())) // what was behind reads as zeros
		}
	}
	if rand.IntN(2) == 0 {
		must(c.t, os.RemoveAll(first.folder))
	}
	for _, i := range rand.Perm(len(c.nodes)) {
		c.start(c.nodes[i])
	}
}

// deleteClaim has another node claim while the owner goes on, which learns it by what it appends.
// What it says meanwhile without a write may be old: no promise covers that.
func deleteClaim(c *cell, l *load) {
	l.blind.Store(true)
	defer l.blind.Store(false)
	time.Sleep(200 * time.Millisecond)
	if err := c.nodes[0].etcd(func(ctx context.Context, etcd *clientv3.Client) error {
		_, err := etcd.Delete(ctx, "owner")
		return err
	}); err != nil {
		c.t.Log(err) // there may be no leader
	}
	pause(3 * time.Second)
	l.serves(100)
}

// fullQuota fills etcd with what is not of the cell, until it refuses all puts. No claim passes
// then. Once that is deleted by hand the two that are left make room, and one of them claims.
func fullQuota(c *cell, _ *load) {
	again := func(quota string) {
		for _, n := range c.nodes {
			n.env = []string{"QUOTA=" + quota}
		}
		c.restart(c.nodes...)
	}
	again("100000000")
	owner := c.owner()
	survivor, foreign, full := c.others(owner)[0], strings.Repeat("x", 1<<20), error(nil)
	for i := 0; i < 1000 && !errors.Is(full, rpctypes.ErrNoSpace); i++ {
		full = survivor.etcd(func(ctx context.Context, etcd *clientv3.Client) error {
			_, err := etcd.Put(ctx, fmt.Sprint("foreign", i), foreign)
			return err
		})
	}
	if !errors.Is(full, rpctypes.ErrNoSpace) {
		c.judge.find("etcd does not get full: %v", full)
	}
	c.kill(owner)
	pause(3 * time.Second)
	if !await(limit, func() bool {
		return survivor.etcd(func(ctx context.Context, etcd *clientv3.Client) error {
			_, err := etcd.Delete(ctx, "foreign", clientv3.WithPrefix())
			return err // there is no leader at first
		}) == nil
	}) {
		c.judge.find("a full etcd takes no delete")
	}
	c.owner()
	c.start(owner)
	c.settled(c.nodes...)
	again("")
}

// restart restarts nodes in turn, as an upgrade does.
func (c *cell) restart(nodes ...*node) {
	for _, n := range nodes {
		c.end(syscall.SIGTERM, n)
		c.start(n)
		c.settled(c.nodes...)
	}
}

// wipe deletes the folder of a node, which joins anew.
func wipe(c *cell, _ *load) {
	n := one(c.nodes)
	c.kill(n)
	pause(2 * time.Second)
	must(c.t, os.RemoveAll(n.folder))
	c.start(n)
	pause(3 * time.Second)
	c.killed(n) // perhaps while it copies
}

// wipeOneOfTwo has a node that lost its folder start while another one is away. It waits for it:
// one vote is no majority.
func wipeOneOfTwo(c *cell, _ *load) {
	two := c.others(one(c.nodes))
	c.kill(two...)
	must(c.t, os.RemoveAll(two[0].folder))
	c.start(two[0])
	pause(5 * time.Second)
	c.start(two[1])
}

// handOver has the owner leave its place to another node, as an operator asks for.
func handOver(c *cell, _ *load) {
	var out []byte
	if !await(limit, func() bool { // it may be refused, such as while a node lags
		owner := c.owner()
		to := one(c.others(owner))
		var err error
		out, err = exec.Command(c.binary, "cluster", "hand-over", "--admin", owner.admin, to.name).CombinedOutput()
		return err == nil && c.owner() == to
	}) {
		c.judge.find("no node is handed the queues: %s", out)
	}
}

// lag has a follower be away until the log was cut beyond what it has, where that is not kept: when
// nothing is written for a while all of it gets into tables.
func lag(c *cell, l *load) {
	owner := c.owner()
	n := one(c.others(owner))
	had, _ := c.about(n)
	c.kill(n)
	pause(time.Second)
	l.paused.Store(true)
	await(limit, func() bool {
		a, err := c.about(owner)
		return err == nil && a.Floor == a.Batch && a.Floor > had.Batch
	})
	time.Sleep(4 * time.Second) // it is cut each two
	l.paused.Store(false)
	l.last.Store(time.Now().UnixNano())
	pause(time.Second)
	c.start(n)
}

// oldImage starts a node with the folder that it had some time before. It follows, or it ends and
// says that the folder is to be deleted. Then it joins anew.
func oldImage(c *cell, l *load) {
	n := one(c.nodes)
	image := n.folder + ".image"
	c.kill(n)
	execute(c.t, "cp", "-a", n.folder, image)
	c.start(n)
	c.settled(c.nodes...)
	l.serves(500)
	pause(5 * time.Second)
	c.kill(n)
	must(c.t, os.RemoveAll(n.folder), os.Rename(image, n.folder))
	if !c.mayEnd("delete it and start", func() {
		c.start(n)
		n.asked.Store(true)
		await(20*time.Second, func() bool { return !n.runs.Load() })
	}, n) {
		return
	}
	must(c.t, os.RemoveAll(n.folder))
	c.start(n)
}

// mayEnd has nodes end by themselves while something goes on, if they say why. It tells whether one
// did.
func (c *cell) mayEnd(why string, meanwhile func(), nodes ...*node) (ended bool) {
	said := make(map[*node]int64)
	for _, n := range nodes {
		info, err := os.Stat(n.log())
		must(c.t, err)
		said[n] = info.Size()
		n.asked.Store(true)
	}
	meanwhile()
	for _, n := range nodes {
		if n.asked.Store(false); n.runs.Load() {
			continue
		}
		ended = true
		text, _ := os.ReadFile(n.log())
		if text = text[said[n]:]; !bytes.Contains(text, []byte(why)) {
			c.judge.find("node %s ends, and does not say %q: %s", n.name, why, text)
		}
	}
	return ended
}

// off has a node whose clock is off, from some time after its start on, own the queues and not.
func (c *cell) off(l *load, by, after time.Duration) {
	n := one(c.nodes)
	n.env = []string{"CLOCK_OFF=" + by.String(), "CLOCK_AFTER=" + after.String()}
	c.restart(n)
	begun := time.Now()
	for tries := 0; tries < 8 && c.owner() != n; tries++ {
		c.killed(c.owner())
		c.settled(c.nodes...)
		l.serves(1) // so that a silence is of one takeover
	}
	time.Sleep(time.Until(begun.Add(after)))
	pause(2 * time.Second)
	c.killed(n)
	c.settled(c.nodes...)
	n.env = nil
	c.restart(n)
}

// deep has more packets than a node can count while its lease lasts when the owner is killed.
func deep(c *cell, _ *load) {
	const many, at = 3_000_000, 1000
	client := redis.NewClient(&redis.Options{Addr: one(c.nodes).redis, MaxRetries: -1, Protocol: 2, DisableIdentity: true, ReadTimeout: limit})
	defer client.Close()
	ctx := context.Background()
	some := make([]any, at)
	for i := range some {
		some[i] = fmt.Sprint("packet ", i)
	}
	length := func() (n int64) {
		var err error
		if !await(limit, func() bool { n, err = client.LLen(ctx, "deep").Result(); return err == nil }) {
			c.judge.find("nobody knows how many packets there are: %v", err)
		}
		return n
	}
	n, err := int64(0), error(nil)
	for begun := time.Now(); n < many && time.Since(begun) < 5*limit; {
		if n, err = client.LPush(ctx, "deep", some...).Result(); err != nil {
			n = length() // a busy machine may have another owner now
		}
	}
	c.killed(c.owner())
	c.settled(c.nodes...)
	left := length()
	if err = client.Del(ctx, "deep").Err(); left != n || n < many || err != nil {
		c.judge.find("%d of %d packets were pushed, and %d are left: %v", n, many, left, err)
	}
}
