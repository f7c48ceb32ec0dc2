package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// serveBoard answers every barbershop update with OK, and every request for the
// next item with the number of updates so far. It ends with the process.
func serveBoard(addr string) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	updates := make(chan int, 1) // holds their number
	updates <- 0
	for {
		conn, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		go func() { // ends when the client hangs up
			defer conn.Close()
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				n, reply := <-updates, "OK"
				if strings.HasPrefix(lines.Text(), "update ") {
					n++
				} else {
					reply = fmt.Sprint(n)
				}
				updates <- n
				if _, err := fmt.Fprintf(conn, "%s\r\n", reply); err != nil {
					return
				}
			}
		}()
	}
}

// boardHelper is a peer with a board, played by this program.
func boardHelper(t *testing.T) *peer {
	t.Helper()
	p := helper(t, "serve-board")
	p.update = loadgen.BarbershopUpdate
	p.next = func(string) loadgen.Protocol { return loadgen.BarbershopNext() }
	p.probe = func() loadgen.Protocol { return loadgen.BarbershopNext() }
	return p
}

func TestABoardIsMadeOnceAndMeasuredInEveryRound(t *testing.T) {
	b := testBench(t)
	c := &benchCase{name: "update", contenders: []contender{{label: "good", peer: boardHelper(t)}}}
	seen := 0
	groups := func(c contender, before state) []loadgen.Group {
		s, items := b.servers[0], before.items
		got, err := loadgen.Ask(t.Context(), s.addr, tell{c.peer.next(""), &seen})
		if err != nil || got.Done != 1 {
			t.Errorf("the server was asked in vain: %+v, %v", got, err)
		}
		if items.Live != 100+2*10 || items.Seed == 0 {
			t.Errorf("the items are %+v, expected 120 with a seed", items)
		}
		return updates(2, 3, 30)(c, before)
	}
	rows, err := boardThroughput{items: 100, extra: 10, limit: time.Minute, traffic: groups}.run(t.Context(), b, c)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.failed) > 0 || len(rows[0].Samples) != 2 || seen != 150 || len(b.servers) != 0 {
		t.Errorf("%d rounds, %d updates before the last one, failures %q; expected 2 and 150 (120 items and a round of 30), none", len(rows[0].Samples), seen, b.failed)
	}
}

// tell keeps the number that the server gave last.
type tell struct {
	loadgen.Protocol
	number *int
}

func (c tell) Consume(dst, src []byte) ([]byte, loadgen.Progress, error) {
	_, _ = fmt.Sscan(string(src), c.number)
	return c.Protocol.Consume(dst, src)
}

func TestBoardGrowthMeasuresEachSizeInAllRounds(t *testing.T) {
	b := testBench(t)
	growth := boardGrowth{items: []int{20, 50}, updates: 500}
	c := &benchCase{name: "board growth", contenders: []contender{{label: "holdfast", peer: boardHelper(t)}}}
	rows, err := growth.run(t.Context(), b, c)
	if err != nil || len(b.failed) > 0 {
		t.Fatal(err, b.failed)
	}
	var names []string
	for _, r := range rows {
		names = append(names, r.Case)
		if len(r.Samples) != 2 {
			t.Errorf("%s has %d samples, expected 2", r.Case, len(r.Samples))
		}
	}
	if got := strings.Join(names, ", "); got != "board 20, board 50" {
		t.Errorf("the rows are %s", got)
	}
}

func TestHoldfastServesBoardsByAnotherListener(t *testing.T) {
	peers := onBoard(allPeers("holdfast"))
	if len(peers) != 2 || peers[0].name != "holdfast" || peers[1].name != "redis" {
		t.Fatalf("%d peers have boards, expected holdfast and redis", len(peers))
	}
	if args := strings.Join(peers[0].args("dir", 8002), " "); !strings.Contains(args, "--barbershop 127.0.0.1:8002") || !strings.Contains(args, "--pinpriq off") {
		t.Errorf("holdfast is started with %s", args)
	}
}
