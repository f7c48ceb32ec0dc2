package redis

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

var (
	histories = flag.Int("histories", 50, "how many histories of concurrent clients are checked")
	seed      = flag.Uint64("seed", 1, "of what the clients ask")
)

const (
	// linearClients and linearCommands make a history that is checked in milliseconds.
	linearClients  = 5
	linearCommands = 30
)

// linearState is what the names of a history stand for. The elements of a list are one string, the
// left one first, with spaces between them.
type linearState struct {
	lists [2]string
	text  string
	count int
}

// run carries out a command and returns the reply.
func (s *linearState) run(c command) string {
	name, _, _ := strings.Cut(c[1], ":")
	if name == "text" || name == "count" {
		return s.runString(c)
	}
	list := &s.lists[strings.Index("ab", name)]
	elements := strings.Fields(*list)
	switch c[0] {
	case "LLEN":
		return number(len(elements))
	case "LRANGE":
		return bulks(elements...)
	case "LPUSH", "RPUSH":
		elements = append([]string{c[2]}, elements...)
		if c[0] == "RPUSH" {
			elements = append(elements[1:], c[2])
		}
		*list = strings.Join(elements, " ")
		return number(len(elements))
	}
	if len(elements) == 0 {
		if c[0] == "BRPOP" {
			return nullArray
		}
		return null
	}
	at := len(elements) - 1
	if c[0] == "LPOP" {
		at = 0
	}
	taken := elements[at]
	*list = strings.Join(append(elements[:at:at], elements[at+1:]...), " ")
	switch c[0] {
	case "BRPOP":
		return bulks(c[1], taken)
	case "RPOPLPUSH":
		s.run(cmd("LPUSH", c[2], taken))
	}
	return bulk(taken)
}

func (s *linearState) runString(c command) string {
	reply := ok
	switch c[0] {
	case "SET":
		s.text = c[2]
	case "INCR":
		s.count++
		reply = number(s.count)
	default:
		if reply = bulk(s.text); s.text == "" {
			reply = null
		}
		if c[0] == "GETDEL" {
			s.text = ""
		}
	}
	return reply
}

// linearModel takes transactions, of one command or several, and replies.
func linearModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return linearState{} },
		Step: func(state, input, output any) (bool, any) {
			s, commands := state.(linearState), input.([]command)
			var replies []string
			for _, c := range commands {
				replies = append(replies, s.run(c))
			}
			if len(commands) == 1 {
				return output == replies[0], s
			}
			return output == array(replies...), s
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%q gives %q", input, output) },
	}
}

// linearTransaction picks what a client does next. No other value is the same.
func linearTransaction(rng *rand.Rand, round int, value string) []command {
	a, b := fmt.Sprint("a:", round), fmt.Sprint("b:", round)
	if rng.IntN(2) == 0 {
		a, b = b, a
	}
	text, count := fmt.Sprint("text:", round), fmt.Sprint("count:", round)
	all := []command{
		cmd("LPUSH", a, value), cmd("RPUSH", a, value), cmd("LPUSH", a, value), cmd("LPOP", a), cmd("RPOP", a), cmd("BRPOP", a, "0.005"),
		cmd("RPOPLPUSH", a, b), cmd("RPOPLPUSH", a, a), cmd("LLEN", a), cmd("LRANGE", a, "0", "-1"),
		cmd("SET", text, value), cmd("GET", text), cmd("GETDEL", text), cmd("INCR", count),
	}
	if rng.IntN(5) > 0 {
		return all[rng.IntN(len(all)):][:1]
	}
	return []command{cmd("RPUSH", a, value), cmd("SET", text, value), cmd("LLEN", b), cmd("INCR", count)}
}

// oneOrder lets clients ask at the same time, in a round of the seed, and fails the test if no
// order explains what they saw. ask makes the nth request of a client.
func oneOrder(t *testing.T, model porcupine.Model, round int, ask func(rng *rand.Rand, client, n int) (in, out any)) {
	t.Helper()
	var mu sync.Mutex
	var history []porcupine.Operation
	var all sync.WaitGroup
	start := time.Now()
	for id := range linearClients {
		rng := rand.New(rand.NewPCG(*seed, uint64(round*linearClients+id)))
		all.Go(func() {
			for n := range linearCommands {
				op := porcupine.Operation{ClientId: id, Call: time.Since(start).Nanoseconds()}
				op.Input, op.Output = ask(rng, id, n)
				op.Return = time.Since(start).Nanoseconds()
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if result := porcupine.CheckOperationsTimeout(model, history, limit); result != porcupine.Ok {
		t.Fatalf("a history of %d requests is %v: no order explains it (seed %d, round %d)", len(history), result, *seed, round)
	}
}

func TestConcurrentClientsSeeOneOrder(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		clients := make([]*conn, linearClients)
		for i := range clients {
			clients[i] = dial(t, addr)
		}
		for round := range *histories {
			oneOrder(t, linearModel(), round, func(rng *rand.Rand, id, n int) (in, out any) {
				commands := linearTransaction(rng, round, fmt.Sprintf("v%d.%d", id, n))
				if len(commands) == 1 {
					return commands, clients[id].ask(commands[0]...)
				}
				return commands, clients[id].transaction(commands...)
			})
		}
	})
}

func TestWrongHistoriesAreRefused(t *testing.T) {
	// at makes an operation between two moments.
	at := func(from, to int64, reply string, commands ...command) porcupine.Operation {
		return porcupine.Operation{ClientId: int(from), Input: commands, Output: reply, Call: from, Return: to}
	}
	push := at(1, 2, number(1), cmd("LPUSH", "a:0", "v"))
	transaction := []command{cmd("RPUSH", "a:0", "v"), cmd("SET", "text:0", "v")}
	for name, row := range map[string]struct {
		history []porcupine.Operation
		want    porcupine.CheckResult
	}{
		"in order":                       {[]porcupine.Operation{push, at(3, 4, bulk("v"), cmd("RPOP", "a:0"))}, porcupine.Ok},
		"popped twice":                   {[]porcupine.Operation{push, at(3, 5, bulk("v"), cmd("RPOP", "a:0")), at(4, 6, bulk("v"), cmd("LPOP", "a:0"))}, porcupine.Illegal},
		"lost":                           {[]porcupine.Operation{push, at(3, 4, null, cmd("RPOP", "a:0"))}, porcupine.Illegal},
		"popped before it was pushed":    {[]porcupine.Operation{at(1, 2, bulk("v"), cmd("RPOP", "a:0")), at(3, 4, number(1), cmd("LPUSH", "a:0", "v"))}, porcupine.Illegal},
		"popped while it was pushed":     {[]porcupine.Operation{at(1, 4, number(1), cmd("LPUSH", "a:0", "v")), at(2, 3, bulks("a:0", "v"), cmd("BRPOP", "a:0", "1"))}, porcupine.Ok},
		"moved and still there":          {[]porcupine.Operation{push, at(3, 4, bulk("v"), cmd("RPOPLPUSH", "a:0", "b:0")), at(5, 6, number(1), cmd("LLEN", "a:0"))}, porcupine.Illegal},
		"an old value":                   {[]porcupine.Operation{at(1, 2, ok, cmd("SET", "text:0", "v")), at(3, 4, ok, cmd("SET", "text:0", "w")), at(5, 6, bulk("v"), cmd("GET", "text:0"))}, porcupine.Illegal},
		"half a transaction":             {[]porcupine.Operation{at(1, 9, array(number(1), ok), transaction...), at(2, 3, bulk("v"), cmd("GET", "text:0")), at(4, 5, number(0), cmd("LLEN", "a:0"))}, porcupine.Illegal},
		"a transaction between two gets": {[]porcupine.Operation{at(1, 9, array(number(1), ok), transaction...), at(2, 3, number(0), cmd("LLEN", "a:0")), at(4, 5, bulk("v"), cmd("GET", "text:0"))}, porcupine.Ok},
	} {
		if got := porcupine.CheckOperationsTimeout(linearModel(), row.history, limit); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
