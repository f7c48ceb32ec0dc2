package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What EXT4_IOC_SHUTDOWN wants, of Linux's include/uapi/linux/ext4.h.
const (
	shutdown = 0x8004587d
	noFlush  = 2
)

// machines says why this machine cannot have others in namespaces; nil if it can.
var machines = sync.OnceValue(func() (err error) {
	maybe := fmt.Sprint("hf", os.Getpid())
	for _, command := range []string{"ip netns add " + maybe, "ip netns del " + maybe, "losetup --find", "fsfreeze --version", "mkfs.ext4 -V"} {
		argv := strings.Fields(command)
		if out, failed := exec.Command(argv[0], argv[1:]...).CombinedOutput(); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w: %s", command, failed, out))
		}
	}
	return err
})

// onMachines founds a cell of three nodes that have nothing in common but a bridge: each is in a
// network namespace of its own, and has a file system of its own. All of it goes with the test.
func onMachines(t *testing.T, binary string, mib int64) *cell {
	t.Helper()
	id := os.Getpid()
	bridge, net := fmt.Sprintf("hf%x", id), fmt.Sprintf("10.%d.%d", 64+id>>8%64, id%256)
	execute(t, "ip", "link", "add", bridge, "type", "bridge")
	later(t, "ip", "link", "del", bridge)
	execute(t, "ip", "addr", "add", net+".254/24", "dev", bridge)
	execute(t, "ip", "link", "set", bridge, "up")
	var nodes []*node
	for i, name := range []string{"a", "b", "c"} {
		image, mount := disk(t, mib)
		n := newNode(name, fmt.Sprintf("%s.%d", net, i+1), mount)
		n.space, n.disk, n.logs = bridge+name, image, t.TempDir() // the disk may be full, or hang
		execute(t, "ip", "netns", "add", n.space)
		later(t, "ip", "netns", "del", n.space)
		execute(t, "ip", "link", "add", n.space, "type", "veth", "peer", "name", "eth0", "netns", n.space)
		execute(t, "ip", "link", "set", n.space, "master", bridge, "up")
		execute(t, "ip", "-n", n.space, "addr", "add", n.host+"/24", "dev", "eth0")
		execute(t, "ip", "-n", n.space, "link", "set", "lo", "up")
		execute(t, "ip", "-n", n.space, "link", "set", "eth0", "up")
		nodes = append(nodes, n)
	}
	certificates := t.TempDir()
	execute(t, binary, "tls", "init", "--nodes", list(nodes), certificates)
	return found(t, binary, nodes, certificates)
}

// later has a command run when the test has ended. It may find that there is nothing to do.
func later(t *testing.T, command ...string) {
	t.Cleanup(func() { _ = exec.Command(command[0], command[1:]...).Run() })
}

// disk makes a file system.
func disk(t *testing.T, mib int64) (image, mount string) {
	t.Helper()
	image, mount = filepath.Join(t.TempDir(), "image"), t.TempDir()
	execute(t, "mkfs.ext4", "-q", image, fmt.Sprint(mib, "M"))
	execute(t, "mount", "-o", "loop", image, mount)
	later(t, "umount", mount)
	later(t, "fsfreeze", "-u", mount)
	return image, mount
}

// linksAndDisks are the faults that need machines.
func linksAndDisks() []fault {
	return []fault{
		{"the link of the owner is cut", func(c *cell, l *load) { c.cut(l, c.owner()) }},
		{"the link of a follower is cut", func(c *cell, l *load) { c.cut(l, one(c.others(c.owner()))) }},
		{"the owner reaches no node", func(c *cell, l *load) { c.unreached(l, c.owner(), false) }},
		{"no node reaches the owner", func(c *cell, l *load) { c.unreached(l, c.owner(), true) }},
		{"the link of the owner flaps", flap},
		{"the disk of the owner hangs", freeze},
		{"a disk has little room", func(c *cell, _ *load) { c.fill(150, some, one(c.nodes)) }},
		{"two disks have little room", func(c *cell, l *load) { c.thin(l, c.others(one(c.nodes))...) }},
		{"a disk is full", func(c *cell, _ *load) { c.fillWhole(one(c.nodes)) }},
		{"two disks are full", func(c *cell, _ *load) { c.fillWhole(c.others(one(c.nodes))...) }},
		{"a disk can only be read", func(c *cell, l *load) { c.readOnly(l, one(c.nodes)) }},
		{"the machine of the owner loses power", func(c *cell, _ *load) { c.power(c.owner()) }},
		{"all machines lose power", func(c *cell, _ *load) { c.power(c.nodes...) }},
	}
}

// link takes the link of a node up or down.
func (c *cell) link(n *node, to string) { execute(c.t, "ip", "link", "set", n.space, to) }

func (c *cell) cut(l *load, n *node) {
	c.link(n, "down")
	l.serves(200)
	pause(4 * time.Second)
	c.link(n, "up")
}

// unreached drops what goes from a node to the others, or from the others to it. Clients reach all.
func (c *cell) unreached(l *load, n *node, from bool) {
	route := func(verb string) {
		for _, other := range c.others(n) {
			at, to := n, other
			if from {
				at, to = other, n
			}
			execute(c.t, "ip", "-n", at.space, "route", verb, "blackhole", to.host)
		}
	}
	route("add")
	time.Sleep(4 * time.Second)
	l.serves(200)
	pause(4 * time.Second)
	route("del")
}

func flap(c *cell, _ *load) {
	n := c.owner()
	for range 4 {
		c.link(n, "down")
		time.Sleep(time.Second)
		c.link(n, "up")
		time.Sleep(time.Second)
	}
}

// freeze has the disk of the owner take no write until another one has taken over.
func freeze(c *cell, l *load) {
	n := c.owner()
	execute(c.t, "fsfreeze", "-f", filepath.Dir(n.folder))
	time.Sleep(3 * time.Second)
	l.serves(200)
	pause(2 * time.Second)
	execute(c.t, "fsfreeze", "-u", filepath.Dir(n.folder))
}

// fill takes the room of some disks, but for some MiB, until something has gone on.
func (c *cell) fill(left uint64, meanwhile func(), nodes ...*node) {
	foreign := func(n *node) string { return filepath.Join(filepath.Dir(n.folder), "foreign") }
	for _, n := range nodes {
		var disk syscall.Statfs_t
		must(c.t, syscall.Statfs(filepath.Dir(n.folder), &disk))
		if free := disk.Bavail * uint64(disk.Bsize) >> 20; free > left {
			execute(c.t, "fallocate", "-l", fmt.Sprint(free-left, "M"), foreign(n))
		}
		if left == 0 { // also what is less than a MiB
			_ = exec.Command("dd", "if=/dev/zero", "of="+foreign(n), "bs=4k", "conv=notrunc", "oflag=append").Run()
		}
	}
	meanwhile()
	for _, n := range nodes {
		must(c.t, os.RemoveAll(foreign(n)))
	}
}

// some is time enough for the owner to see how much room nodes have.
func some() {
	time.Sleep(3 * time.Second)
	pause(3 * time.Second)
}

// thin leaves a majority too little room for pushes, which must be refused.
func (c *cell) thin(l *load, nodes ...*node) {
	c.fill(150, func() {
		l.errs.Clear()
		if !await(limit, func() (refused bool) {
			l.errs.Range(func(text, _ any) bool { refused = strings.Contains(text.(string), "nearly full"); return !refused })
			return refused
		}) {
			c.judge.find("pushes are taken where a majority has little room")
		}
	}, nodes...)
}

// fillWhole leaves no room for etcd, which ends when a write of its own fails.
func (c *cell) fillWhole(nodes ...*node) {
	c.mayEnd("etcd cannot go on", func() {
		c.fill(0, some, nodes...)
		time.Sleep(15 * time.Second) // the end of one takes some ten
	}, nodes...)
}

// readOnly has the file system of a node take no write, as after an error of its device.
func (c *cell) readOnly(l *load, n *node) {
	if !c.mayEnd("etcd cannot go on", func() {
		execute(c.t, "mount", "-o", "remount,abort", filepath.Dir(n.folder))
		l.serves(200)
		await(limit, func() bool { return !n.runs.Load() })
	}, n) {
		c.judge.find("node %s goes on with a disk that takes no write", n.name)
		c.kill(n)
	}
	c.mount(n)
	c.start(n)
}

// power ends machines: of what they have written their disks have what was synced, and perhaps
// more.
func (c *cell) power(nodes ...*node) {
	for _, n := range nodes {
		n.asked.Store(true)
		dir, err := os.Open(filepath.Dir(n.folder))
		must(c.t, err)
		must(c.t, unix.IoctlSetPointerInt(int(dir.Fd()), shutdown, noFlush), dir.Close())
	}
	c.kill(nodes...)
	pause(3 * time.Second)
	for _, i := range rand.Perm(len(nodes)) {
		c.mount(nodes[i])
		c.start(nodes[i])
	}
}

// mount mounts the file system of a node that does not run anew.
func (c *cell) mount(n *node) {
	execute(c.t, "umount", filepath.Dir(n.folder))
	execute(c.t, "mount", "-o", "loop", n.disk, filepath.Dir(n.folder))
}
