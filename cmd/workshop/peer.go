package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// program is a server that is installed, or may be.
type program struct{ name, binary, versionArg string }

// allPrograms are the servers in the order of a round. Holdfast is first.
func allPrograms(holdfast string) []*program {
	return []*program{
		{"holdfast", holdfast, "version"}, {"redis", "redis-server", "--version"}, {"beanstalkd", "beanstalkd", "-v"},
		{"postgres", "postgres", "--version"}, {"rabbitmq", "rabbitmqctl", ""}, {"nats", "nats-server", "--version"},
	}
}

// find replaces the command by its path.
func (p *program) find() error {
	found, err := exec.LookPath(p.binary)
	if err != nil {
		return fmt.Errorf("the program %q was not found: %w", p.binary, err)
	}
	if p.binary, err = filepath.Abs(found); err != nil {
		return fmt.Errorf("the path of %q cannot be made absolute: %w", found, err)
	}
	return nil
}

// version is the first line of what the program says about itself. RabbitMQ's path has the version,
// and asking it would leave a daemon behind.
func (p *program) version(ctx context.Context) string {
	if p.versionArg == "" {
		path, _ := filepath.EvalSymlinks(p.binary) // find has found it
		return path
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, p.binary, p.versionArg).Output()
	if err != nil {
		return "version unknown"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(first)
}

// peer is a program in one of the ways to use it: how to start it, and what its queues are asked.
type peer struct {
	label   string // in the table
	program string
	binary  string // the path of the program

	// args starts the server; it then replies only after a sync. DIR, PORT and ADDRESS stand for
	// its data folder, its port, and that port of the loopback address; ADMIN for the address of its
	// metrics, or off.
	args []string
	// fillArgs, if set, starts it without syncs, for filling. A killed process does not lose what
	// it has written.
	fillArgs []string
	// slow is set where each operation costs a sync of its own. Then a case that pops fills in only
	// a few packets.
	slow bool

	asks asks

	// measure, if set, is how it is measured in place of asks.
	measure func(ctx context.Context, b *bench, p *peer, c *benchCase, r *row) error
}

// asks are the requests of a peer, by the names that the table of cases has for them. A pop takes
// without waiting, also of a queue that is not there, by which a start finds out whether it serves.
type asks map[string]func(t target) loadgen.Protocol

// target is what requests are about.
type target struct {
	loadgen.Packets
	items loadgen.Items
}

const (
	queueName    = "workshop"
	claimedQueue = queueName + ":claimed"
	unusedQueue  = queueName + ":unused" // no case pushes to it
	payloadSize  = 128
)

// groups makes the connections of some loads.
func (p *peer) groups(t target, loads ...load) []loadgen.Group {
	var groups []loadgen.Group
	for _, l := range loads {
		groups = append(groups, loadgen.Group{
			Name: l.ask, Conns: l.conns, Depth: l.depth, Count: int64(l.count),
			New: func() loadgen.Protocol { return p.asks[l.ask](t) },
		})
	}
	return groups
}

// The peers of the cases. Boards have scores that change. Lists are asked over the Redis protocol,
// beside Holdfast as it is under the name of pinpriq. Workers push, claim and acknowledge:
// beanstalkd syncs every 50 ms there. Tables
// are those of table.go, and cells those of cell.go.
var (
	queues = []peer{
		{label: "holdfast", program: "holdfast", args: holdfastArgs("--pinpriq"), asks: pinpriqQueue},
		{label: "redis", program: "redis", args: redisArgs, asks: sortedSet},
		{
			label: "beanstalkd", program: "beanstalkd", slow: true, asks: tube,
			args: beanstalkdArgs("-f0"), fillArgs: beanstalkdArgs("-F"),
		},
	}
	waiting = []peer{
		queues[0],
		{label: "redis waiting", program: "redis", args: redisArgs, asks: asks{
			"push": sortedSet["push"], "pop": sortedSet["pop"], "wait": onQueue("BZPOPMIN", "0"),
		}},
		queues[1],
	}
	boards = []peer{
		{label: "holdfast", program: "holdfast", args: holdfastArgs("--barbershop"), asks: asks{
			"update": func(t target) loadgen.Protocol { return loadgen.BarbershopUpdate(t.items) },
			"pop":    func(target) loadgen.Protocol { return loadgen.BarbershopNext() },
		}},
		{label: "redis", program: "redis", args: redisArgs, asks: asks{
			"update": func(t target) loadgen.Protocol { return loadgen.RedisZIncrBy(t.items) },
			"pop":    onQueue("ZPOPMAX"),
		}},
	}
	lists = []peer{
		{label: "holdfast", program: "holdfast", args: holdfastArgs("--redis"), asks: list},
		{label: "pinpriq", program: "holdfast", args: holdfastArgs("--pinpriq"), asks: pinpriqQueue},
		{label: "redis", program: "redis", args: redisArgs, asks: list},
	}
	workers = []peer{
		{label: "holdfast", program: "holdfast", args: holdfastArgs("--redis"), asks: holdfastQueue},
		{label: "redis", program: "redis", args: redisArgs, asks: list},
		{label: "beanstalkd", program: "beanstalkd", slow: true, args: beanstalkdArgs("-f50"), fillArgs: beanstalkdArgs("-F"), asks: tube},
	}

	tables = []peer{workers[0], {label: "postgres", program: "postgres", measure: rateOfTable}}

	cells = []peer{
		{label: "holdfast", program: "holdfast", asks: holdfastQueue, measure: rateOfCell(openHoldfast, nil)},
		{label: "rabbitmq", program: "rabbitmq", measure: rateOfCell(openRabbit, func() loadgen.Protocol { return loadgen.AMQPLogin(queueName) }), asks: asks{
			"push": func(t target) loadgen.Protocol { return loadgen.AMQPPublish(t.Packets) },
		}},
		{label: "nats", program: "nats", measure: rateOfCell(openNATS, nil), asks: asks{
			"push": func(t target) loadgen.Protocol { return loadgen.NATSPublish(t.Packets) },
		}},
	}

	pinpriqQueue = asks{
		"push": func(t target) loadgen.Protocol { return loadgen.PinpriqPush(t.Packets) },
		"pop":  func(t target) loadgen.Protocol { return loadgen.PinpriqPop(t.Queue) },
		"wait": func(t target) loadgen.Protocol { return loadgen.PinpriqSubscribe(t.Queue) },
		"pair": func(t target) loadgen.Protocol { return loadgen.PinpriqPair(t.Packets) },
	}
	sortedSet = asks{
		"push": func(t target) loadgen.Protocol { return loadgen.RedisZAdd(t.Packets) },
		"pop":  onQueue("ZPOPMIN"),
		"wait": onQueue("ZPOPMIN"), // asks again
	}
	list = asks{
		"push":   func(t target) loadgen.Protocol { return loadgen.RedisLPush(t.Packets) },
		"pop":    onQueue("RPOP"),
		"wait":   onQueue("BRPOP", "0"),
		"claim":  func(t target) loadgen.Protocol { return loadgen.RedisClaim(t.Packets, claimedQueue) },
		"work":   func(t target) loadgen.Protocol { return loadgen.RedisWork(t.Packets, claimedQueue) },
		"get":    func(t target) loadgen.Protocol { return loadgen.Redis("GET", t.items) },
		"update": func(t target) loadgen.Protocol { return loadgen.RedisSet(t.items, payloadSize) },
	}
	holdfastQueue = asks{
		"push":    func(t target) loadgen.Protocol { return loadgen.Redis("QPUSH", t.Queue, t.Packets) },
		"pop":     onQueue("QPOP"),
		"hold":    func(t target) loadgen.Protocol { return loadgen.QueueClaim(t.Queue, loadgen.MaxLimit) },
		"renew":   func(t target) loadgen.Protocol { return loadgen.QueueRenew(t.Queue) },
		"work":    func(t target) loadgen.Protocol { return loadgen.QueueWork(t.Packets) },
		"grouped": func(t target) loadgen.Protocol { return loadgen.QueueGroupWork(t.Packets) },
	}
	tube = asks{
		"push": func(t target) loadgen.Protocol { return loadgen.BeanstalkdPut(t.Packets) },
		"pop":  func(target) loadgen.Protocol { return loadgen.BeanstalkdTake() },
		"work": func(t target) loadgen.Protocol { return loadgen.BeanstalkdWork(t.Packets) },
	}
)

// onQueue is a command of Redis whose first argument is the queue.
func onQueue(command string, more ...any) func(target) loadgen.Protocol {
	return func(t target) loadgen.Protocol { return loadgen.Redis(append([]any{command, t.Queue}, more...)...) }
}

var redisArgs = append(strings.Fields("--bind 127.0.0.1 --port PORT --dir DIR --appendonly yes --appendfsync always --save"), "")

func beanstalkdArgs(sync string) []string {
	return []string{"-l", "127.0.0.1", "-p", "PORT", "-b", "DIR", sync}
}

// holdfastArgs makes Holdfast listen for one protocol only.
func holdfastArgs(protocol string) []string {
	args := []string{"serve", "--data", filepath.Join("DIR", "data"), "--sync", "always"}
	for _, flag := range []string{"--pinpriq", "--barbershop", "--redis", "--admin"} {
		listen := "off"
		switch flag {
		case protocol:
			listen = "ADDRESS"
		case "--admin":
			listen = "ADMIN"
		}
		args = append(args, flag, listen)
	}
	return args
}
