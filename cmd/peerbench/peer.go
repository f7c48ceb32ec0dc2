package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/loadgen"
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

	// A board of items whose scores change; nil if the server has none.
	make   func(loadgen.Items) loadgen.Protocol // makes each item once
	update func(loadgen.Items) loadgen.Protocol // updates random ones
	next   func(queue string) loadgen.Protocol

	versionArg string
}

// unusedQueue is a queue that no case pushes to.
const unusedQueue = "peerbench:unused"

// allPeers lists the servers in the order of a round. Holdfast is first.
func allPeers(holdfast string) []*peer {
	return []*peer{
		{
			name: "holdfast", binary: holdfast, versionArg: "version",
			args: func(dir string, port int) []string {
				return []string{"serve", "--data", filepath.Join(dir, "data"), "--pinpriq", address(port), "--sync", "always",
					"--barbershop", "off", "--redis", "off", "--admin", "off"}
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
			probe: func() loadgen.Protocol { return loadgen.RedisZPopMin(unusedQueue) },
			push:  loadgen.RedisZAdd, pop: loadgen.RedisZPopMin,
			wait: loadgen.RedisBZPopMin,
			make: loadgen.RedisZIncrByFill, update: loadgen.RedisZIncrBy, next: loadgen.RedisZPopMax,
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
				return []string{"serve", "--data", filepath.Join(dir, "data"), "--barbershop", address(port), "--sync", "always",
					"--pinpriq", "off", "--redis", "off", "--admin", "off"}
			}
			board.probe = func() loadgen.Protocol { return loadgen.BarbershopNext() }
			board.make, board.update = loadgen.BarbershopFill, loadgen.BarbershopUpdate
			board.next = func(string) loadgen.Protocol { return loadgen.BarbershopNext() }
			p = &board
		}
		if p.update != nil {
			list = append(list, p)
		}
	}
	return list
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
