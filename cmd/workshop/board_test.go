package main

import (
	"bufio"
	"fmt"
	"maps"
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
	p.asks = boards[0].asks
	return p
}

func TestABoardIsMadeOnceAndMeasuredInEveryRound(t *testing.T) {
	b := testBench(t)
	p, seen := boardHelper(t), 0
	update := p.asks["update"]
	p.asks = maps.Clone(p.asks)
	p.asks["measured"] = func(before target) loadgen.Protocol {
		s, items := b.servers[0], before.items
		got, err := loadgen.Ask(t.Context(), s.addr, tell{p.asks["pop"](before), &seen})
		if err != nil || got.Done != 1 {
			t.Errorf("the server was asked in vain: %+v, %v", got, err)
		}
		if items.Live != 100+2*10 || items.Seed == 0 {
			t.Errorf("the items are %+v, expected 120 with a seed", items)
		}
		return update(before)
	}
	c := &benchCase{
		name: "update", peers: []peer{*p},
		traffic: traffic{
			keep: true, limit: time.Minute,
			fill: []filling{{ask: "update", count: 100, perRound: 10}}, loads: []load{{"measured", 2, 3, 30}},
		},
	}
	rows, err := rates(t.Context(), b, c)
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
	c := &benchCase{
		name: "board growth", rows: "board", peers: []peer{*boardHelper(t)}, sizes: []int{20, 50},
		traffic: filled("update", 0, load{"update", 50, 16, 500}),
	}
	rows, err := growth(t.Context(), b, c)
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
	if len(boards) != 2 || boards[0].label != "holdfast" || boards[1].label != "redis" {
		t.Fatalf("%d peers have boards, expected holdfast and redis", len(boards))
	}
	if args := strings.Join(boards[0].args, " "); !strings.Contains(args, "--barbershop ADDRESS") || !strings.Contains(args, "--pinpriq off") {
		t.Errorf("holdfast is started with %s", args)
	}
}
