package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// machines are nodes each in a network namespace of its own, on one bridge, and each with a file
// system of its own. What they are made of goes with the test.
type machines struct {
	t    *testing.T
	name string // of the bridge; those of links and namespaces begin with it
}

// later has a command run when the test has ended. It may find that there is nothing to do.
func (m *machines) later(command ...string) {
	m.t.Cleanup(func() { _ = exec.Command(command[0], command[1:]...).Run() })
}

// inNamespaces founds a cell of three nodes that have nothing in common but a bridge.
func inNamespaces(t *testing.T, binary string, mib int64) (*cell, *machines) {
	t.Helper()
	for _, program := range []string{"ip", "mkfs.ext4", "fsfreeze"} {
		if _, err := exec.LookPath(program); err != nil || os.Getuid() != 0 {
			t.Skipf("needs root, and %s: apt install iproute2 e2fsprogs util-linux", program)
		}
	}
	id := os.Getpid()
	m := &machines{t: t, name: fmt.Sprintf("hf%x", id)}
	execute(m.t, "ip", "link", "add", m.name, "type", "bridge")
	m.later("ip", "link", "del", m.name)
	execute(m.t, "ip", "addr", "add", fmt.Sprintf("10.%d.%d.254/24", 64+id>>8%64, id%256), "dev", m.name)
	execute(m.t, "ip", "link", "set", m.name, "up")
	var nodes []*node
	for i, name := range []string{"a", "b", "c"} {
		n, inside := newNode(name, fmt.Sprintf("10.%d.%d.%d", 64+id>>8%64, id%256, i+1), m.disk(mib)), m.name+name
		execute(m.t, "ip", "netns", "add", inside)
		m.later("ip", "netns", "del", inside)
		execute(m.t, "ip", "link", "add", inside, "type", "veth", "peer", "name", "eth0", "netns", inside)
		execute(m.t, "ip", "link", "set", inside, "master", m.name, "up")
		execute(m.t, "ip", "-n", inside, "addr", "add", n.host+"/24", "dev", "eth0")
		execute(m.t, "ip", "-n", inside, "link", "set", "lo", "up")
		execute(m.t, "ip", "-n", inside, "link", "set", "eth0", "up")
		n.inside = []string{"ip", "netns", "exec", inside}
		nodes = append(nodes, n)
	}
	certificates := t.TempDir()
	execute(m.t, binary, "tls", "init", "--nodes", list(nodes), certificates)
	return found(t, binary, nodes, certificates), m
}

// disk makes a file system.
func (m *machines) disk(mib int64) (mount string) {
	m.t.Helper()
	dir := m.t.TempDir()
	image, mount := filepath.Join(dir, "image"), filepath.Join(dir, "mount")
	must(m.t, os.WriteFile(image, nil, 0o600), os.Truncate(image, mib<<20), os.Mkdir(mount, 0o700))
	execute(m.t, "mkfs.ext4", "-q", "-F", image)
	execute(m.t, "mount", "-o", "loop", image, mount)
	m.later("umount", mount)
	m.later("fsfreeze", "-u", mount)
	return mount
}

// faults are those of links and disks.
func (m *machines) faults() []fault {
	return []fault{
		{"the link of the owner is cut", 1, func(c *cell, l *load) { m.cut(c, l, c.owner()) }},
		{"the link of a follower is cut", 1, func(c *cell, l *load) { m.cut(c, l, one(c.others(c.owner()))) }},
		{"the owner reaches no node", 1, func(c *cell, l *load) { m.unreached(c, l, c.owner(), false) }},
		{"no node reaches the owner", 1, func(c *cell, l *load) { m.unreached(c, l, c.owner(), true) }},
		{"the link of the owner flaps", 1, m.flap},
		{"the disk of the owner hangs", 1, m.freeze},
		{"a disk is full", 1, func(c *cell, _ *load) { m.fill(one(c.nodes)) }},
		{"two disks are full", 1, func(c *cell, _ *load) { m.fill(c.others(one(c.nodes))...) }},
	}
}

func (m *machines) cut(c *cell, l *load, n *node) {
	execute(m.t, "ip", "link", "set", m.name+n.name, "down")
	l.serves(200)
	pause(4 * time.Second)
	execute(m.t, "ip", "link", "set", m.name+n.name, "up")
}

// unreached drops what goes from a node to the others, or from the others to it. Clients reach all.
func (m *machines) unreached(c *cell, l *load, n *node, from bool) {
	route := func(verb string) {
		for _, other := range c.others(n) {
			at, to := n, other
			if from {
				at, to = other, n
			}
			execute(m.t, "ip", "-n", m.name+at.name, "route", verb, "blackhole", to.host)
		}
	}
	route("add")
	time.Sleep(4 * time.Second)
	l.serves(200)
	pause(4 * time.Second)
	route("del")
}

func (m *machines) flap(c *cell, l *load) {
	n := c.owner()
	for range 4 {
		execute(m.t, "ip", "link", "set", m.name+n.name, "down")
		time.Sleep(time.Second)
		execute(m.t, "ip", "link", "set", m.name+n.name, "up")
		time.Sleep(time.Second)
	}
}

// freeze has the disk of the owner take no write until another one has taken over.
func (m *machines) freeze(c *cell, l *load) {
	n := c.owner()
	execute(m.t, "fsfreeze", "-f", filepath.Dir(n.folder))
	time.Sleep(3 * time.Second)
	l.serves(200)
	pause(2 * time.Second)
	execute(m.t, "fsfreeze", "-u", filepath.Dir(n.folder))
}

// fill takes all room of some disks for a while.
func (m *machines) fill(nodes ...*node) {
	foreign := func(n *node) string { return filepath.Join(filepath.Dir(n.folder), "foreign") }
	for _, n := range nodes {
		_ = exec.Command("fallocate", "-l", "100G", foreign(n)).Run() // it takes what there is, or nothing
		_ = exec.Command("dd", "if=/dev/zero", "of="+foreign(n), "bs=1M", "conv=notrunc", "oflag=append").Run()
	}
	pause(5 * time.Second)
	for _, n := range nodes {
		must(m.t, os.Remove(foreign(n)))
	}
}

func TestACellOfMachinesLosesNothing(t *testing.T) {
	if *cycles == 0 {
		t.Skip("skipped: -cycles takes minutes")
	}
	t.Parallel()
	c, m := inNamespaces(t, build(t), 1024)
	for _, found := range c.run(m.faults(), *only, *cycles) {
		t.Error(found)
	}
}
