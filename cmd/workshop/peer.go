package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// peer is a kind of server: how to start it, and which protocol its queues speak.
type peer struct {
	name   string
	binary string // command, replaced by its path in find

	// args starts the server on a port of the loopback address and a data folder. It then replies
	// only after a sync.
	args func(dir string, port int) []string
	// fillArgs, if set, starts it without syncs, for filling. A killed process does not lose what
	// it has written.
	fillArgs func(dir string, port int) []string
	// slow is set where each operation costs a sync of its own. Then a case that pops fills in only
	// a few packets.
	slow bool

	probe func() loadgen.Protocol // a request that a server answers, with a packet or nothing, when it serves
	push  func(loadgen.Packets) loadgen.Protocol
	pop   func(queue string) loadgen.Protocol    // takes without waiting
	wait  func(queue string) loadgen.Protocol    // takes and waits for packets, nil if that is not known
	pair  func(loadgen.Packets) loadgen.Protocol // push and pop in one, nil if that is not known

	// A board of items whose scores change, or strings; nil if the server has none.
	update func(loadgen.Items) loadgen.Protocol // updates random ones, or makes each once, in order
	next   func(queue string) loadgen.Protocol

	claim func(p loadgen.Packets, claimed string) loadgen.Protocol // moves a packet and deletes one that was moved before; nil if that is not known
	get   func(loadgen.Items) loadgen.Protocol                     // reads random items; nil if that is not known

	work func(loadgen.Packets) loadgen.Protocol // pushes, claims and acknowledges

	versionArg string
}

// unusedQueue is a queue that no case pushes to.
const unusedQueue = "workshop:unused"

// allPeers lists the servers in the order of a round. Holdfast is first.
func allPeers(holdfast string) []*peer {
	return []*peer{
		{
			name: "holdfast", binary: holdfast, versionArg: "version",
			args: func(dir string, port int) []string {
				return holdfastArgs("--pinpriq", dir, port)
			},
			probe: func() loadgen.Protocol { return loadgen.PinpriqPop(loadgen.BarrierQueue) },
			push:  loadgen.PinpriqPush, pop: loadgen.PinpriqPop, pair: loadgen.PinpriqPair,
			wait: loadgen.PinpriqSubscribe,
		},
		{
			name: "redis", binary: "redis-server", versionArg: "--version",
			args: func(dir string, port int) []string {
				return []string{
					"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
					"--appendonly", "yes", "--appendfsync", "always", "--save", "",
				}
			},
			probe:  func() loadgen.Protocol { return loadgen.Redis("ZPOPMIN", unusedQueue) },
			push:   loadgen.RedisZAdd,
			pop:    func(queue string) loadgen.Protocol { return loadgen.Redis("ZPOPMIN", queue) },
			wait:   func(queue string) loadgen.Protocol { return loadgen.Redis("BZPOPMIN", queue, "0") },
			update: loadgen.RedisZIncrBy,
			next:   func(queue string) loadgen.Protocol { return loadgen.Redis("ZPOPMAX", queue) },
		},
		{
			name: "beanstalkd", binary: "beanstalkd", versionArg: "-v", slow: true,
			args: func(dir string, port int) []string {
				return []string{"-l", "127.0.0.1", "-p", strconv.Itoa(port), "-b", dir, "-f0"}
			},
			fillArgs: func(dir string, port int) []string {
				return []string{"-l", "127.0.0.1", "-p", strconv.Itoa(port), "-b", dir, "-F"}
			},
			probe: func() loadgen.Protocol { return loadgen.BeanstalkdTake() },
			push:  loadgen.BeanstalkdPut,
			pop:   func(string) loadgen.Protocol { return loadgen.BeanstalkdTake() },
		},
	}
}

// onBoard returns Holdfast listening for barbershop instead of pinpriq, and the peers that have
// boards.
func onBoard(peers []*peer) []*peer {
	var list []*peer
	for _, p := range peers {
		if p.name == "holdfast" {
			board := *p
			board.args = func(dir string, port int) []string {
				return holdfastArgs("--barbershop", dir, port)
			}
			board.probe = func() loadgen.Protocol { return loadgen.BarbershopNext() }
			board.update = loadgen.BarbershopUpdate
			board.next = func(string) loadgen.Protocol { return loadgen.BarbershopNext() }
			p = &board
		}
		if p.update != nil {
			list = append(list, p)
		}
	}
	return list
}

// onLists returns Holdfast listening for Redis, Holdfast as it is under the name of pinpriq, and
// Redis, both with lists in place of sorted sets.
func onLists(peers []*peer) []*peer {
	var list []*peer
	for _, p := range peers {
		if p.name != "holdfast" && p.name != "redis" {
			continue
		}
		lists := *p
		if p.name == "holdfast" {
			lists.args = func(dir string, port int) []string { return holdfastArgs("--redis", dir, port) }
		}
		lists.probe = func() loadgen.Protocol { return loadgen.RedisRPop(unusedQueue) }
		lists.push, lists.pop, lists.claim = loadgen.RedisLPush, loadgen.RedisRPop, loadgen.RedisClaim
		lists.wait = func(queue string) loadgen.Protocol { return loadgen.Redis("BRPOP", queue, "0") }
		lists.update = func(items loadgen.Items) loadgen.Protocol { return loadgen.RedisSet(items, payloadSize) }
		lists.get = func(items loadgen.Items) loadgen.Protocol { return loadgen.Redis("GET", items) }
		list = append(list, &lists)
		if p.name == "holdfast" {
			own := *p
			own.name = "pinpriq"
			list = append(list, &own)
		}
	}
	return list
}

// onWork returns the peers with what a worker does. Holdfast listens for Redis, beanstalkd syncs
// every 50 ms.
func onWork(peers []*peer) []*peer {
	var list []*peer
	for _, p := range peers {
		own := *p
		switch p.name {
		case "holdfast":
			own.args = func(dir string, port int) []string { return holdfastArgs("--redis", dir, port) }
			own.probe = func() loadgen.Protocol { return loadgen.RedisRPop(unusedQueue) }
			own.push = func(p loadgen.Packets) loadgen.Protocol { return loadgen.Redis("QPUSH", p.Queue, p) }
			own.pop = func(queue string) loadgen.Protocol { return loadgen.Redis("QPOP", queue) }
			own.work = loadgen.QueueWork
		case "redis":
			own.work = func(p loadgen.Packets) loadgen.Protocol { return loadgen.RedisWork(p, claimedQueue) }
		case "beanstalkd":
			own.args = func(dir string, port int) []string {
				return []string{"-l", "127.0.0.1", "-p", strconv.Itoa(port), "-b", dir, "-f50"}
			}
			own.work = loadgen.BeanstalkdWork
		}
		list = append(list, &own)
	}
	return list
}

// holdfastArgs makes Holdfast listen for one protocol only.
func holdfastArgs(protocol, dir string, port int) []string {
	args := []string{"serve", "--data", filepath.Join(dir, "data"), "--sync", "always"}
	for _, flag := range []string{"--pinpriq", "--barbershop", "--redis", "--admin"} {
		listen := "off"
		if flag == protocol {
			listen = address(port)
		}
		args = append(args, flag, listen)
	}
	return args
}

// find replaces the command by its path.
func (p *peer) find() error {
	found, err := exec.LookPath(p.binary)
	if err != nil {
		return fmt.Errorf("the program %q was not found: %w", p.binary, err)
	}
	if p.binary, err = filepath.Abs(found); err != nil {
		return fmt.Errorf("the path of %q cannot be made absolute: %w", found, err)
	}
	return nil
}

// version is the first line of what the program says about itself.
func (p *peer) version(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, p.binary, p.versionArg).Output()
	if err != nil {
		return "version unknown"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(first)
}

func address(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
