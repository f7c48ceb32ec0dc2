package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

const boardQueue = "the board"

// serveBoard starts a server with both listeners on a folder, and one board.
func serveBoard(t *testing.T, data string) *server {
	t.Helper()
	return serveConfig(t, daemon.Config{Data: data, Barbershop: "127.0.0.1:0", BarbershopQueue: boardQueue})
}

// lines sends a text and expects another, with their line ends.
func (s *socket) lines(sent, want string) {
	s.t.Helper()
	s.send([]byte(sent))
	if got := s.bytes(len(want)); string(got) != want {
		s.t.Fatalf("sent %.200q, got\n%.400q, expected\n%.400q", sent, got, want)
	}
}

func TestASessionOfTheBarbershopDocument(t *testing.T) {
	server := serveBoard(t, t.TempDir())
	s := dialAddr(t, server.board)
	s.lines("next\r\n", "-1\r\n")
	s.lines("update 5001 1\r\n", "OK\r\n")
	s.lines("update 5002 2\r\n", "OK\r\n")
	s.lines("update 5001 2\r\n", "OK\r\n")
	s.lines("nxt\r\n", "ERROR\r\n")
	s.lines("update 5001\r\n", "CLIENT_ERROR wrong number of words: expected update <item> <score>\r\n")
	s.lines("next\r\n", "5001\r\n")
	s.lines("next\r\n", "5002\r\n")
	s.lines("next\r\n", "-1\r\n")
	s.send([]byte("stats\r\n"))
	s.lines("", "STAT uptime ")
	s.hangUpAfter("END\r\n")
}

// hangUpAfter reads a text and expects nothing behind it.
func (s *socket) hangUpAfter(end string) {
	s.t.Helper()
	for got := ""; !strings.HasSuffix(got, end); {
		got += string(s.bytes(1))
	}
	s.hangUp()
}

// TestTheClientsOfV2Work plays what the clients of the second dialect send in their tests.
func TestTheClientsOfV2Work(t *testing.T) {
	s := dialAddr(t, serveBoard(t, t.TempDir()).board)
	for _, row := range [][2]string{
		{"NEXT", "+-1"}, {"PEEK", "+-1"}, {"UPDATE 5001 1", "+OK"}, {"PEEK", "+5001"}, {"NEXT", "+5001"}, {"NEXT", "+-1"},
		{"UPDATE 5000 1", "+OK"}, {"PEEK", "+5000"}, {"SCORE 5000", "+1"}, {"NEXT", "+5000"}, {"NEXT", "+-1"},
	} {
		s.lines(row[0]+"\r\n", row[1]+"\r\n")
	}
	for range 2 { // a thousand updates, one at a time
		for i := range 500 {
			s.lines(fmt.Sprintf("UPDATE %d 1\n", i+1), "+OK\r\n")
		}
	}
	s.send([]byte("INFO\r\n"))
	s.lines("", "uptime:")
	s.hangUpAfter("updates:1002\r\nitems:500\r\npools:1\r\n")
}

// board is the simplest thing that obeys the document: a slice in the order in which items came to
// their pools.
type board struct{ items []boardItem }

type boardItem struct{ id, score uint32 }

func (b *board) update(id, by uint32) {
	for i, it := range b.items {
		if it.id != id {
			continue
		}
		sum := uint32(min(uint64(it.score)+uint64(by), 1<<32-1))
		if sum >= 1<<32-2 { // one pool
			sum = 1<<32 - 1
		}
		if sum != it.score {
			b.items = append(append(b.items[:i:i], b.items[i+1:]...), boardItem{id, sum})
		}
		return
	}
	if by == 1<<32-2 {
		by++
	}
	b.items = append(b.items, boardItem{id, by})
}

func (b *board) next() string {
	best := -1
	for i, it := range b.items {
		if best < 0 || it.score > b.items[best].score {
			best = i
		}
	}
	if best < 0 {
		return "-1"
	}
	id := b.items[best].id
	b.items = append(b.items[:best:best], b.items[best+1:]...)
	return fmt.Sprint(id)
}

func TestRestartKeepsScoresAndTheOrderInAPool(t *testing.T) {
	server := serveBoard(t, t.TempDir())
	s := dialAddr(t, server.board)
	var model board
	chance := rand.New(rand.NewPCG(4, 2))
	for range 4 {
		var sent, want bytes.Buffer
		for range 2000 {
			id, by := 1+chance.Uint32N(300), chance.Uint32N(4)
			switch chance.IntN(10) {
			case 0:
				sent.WriteString("next\n")
				want.WriteString(model.next() + "\r\n")
			case 1:
				sent.WriteString("NEXT\n")
				want.WriteString("+" + model.next() + "\r\n")
			case 2:
				by = 1<<32 - 1 - by // to the end of the scores
				fallthrough
			default:
				model.update(id, by)
				fmt.Fprintf(&sent, "update %d %d\n", id, by)
				want.WriteString("OK\r\n")
			}
		}
		s.lines(sent.String(), want.String())
		server.stop(t)
		server = serveBoard(t, server.data)
		s = dialAddr(t, server.board)
	}
	for len(model.items) > 0 {
		s.lines("next\n", model.next()+"\r\n")
	}
	s.lines("next\n", "-1\r\n")
}

func TestTheSameItemsAreSeenThroughBothListeners(t *testing.T) {
	server := serveBoard(t, t.TempDir())
	s, other := dialAddr(t, server.board), server.dial(t)
	// An item that pinpriq pushed, and one that it pops.
	other.send(push(boardQueue, packet{"7", ""}, 255, 0))
	other.barrier()
	s.lines("SCORE 7\r\nupdate 8 4294967295\r\n", "+4294967040\r\nOK\r\n")
	other.send(pop(boardQueue), pop(boardQueue), pop(boardQueue))
	other.want(packet{"8", ""})
	other.want(packet{"7", ""})
	other.want()
	s.lines("next\r\nSCORE 7\r\n", "-1\r\n+-1\r\n")
	// A subscriber is given what an update makes.
	other.send(subscribe(boardQueue), ready, ready)
	other.barrier()
	s.lines("update 9 1\r\n", "OK\r\n")
	other.want(packet{"9", ""})
	s.lines("next\r\nupdate 10 1\r\nnext\r\n", "-1\r\nOK\r\n-1\r\n")
	other.want(packet{"10", ""})
	// A packet that is no item stays where it is.
	other.send(unsubscribe(boardQueue), push(boardQueue, packet{"word", "payload"}, 1, 0))
	other.barrier()
	s.send([]byte("next\r\nPEEK\r\n"))
	s.lines("", `SERVER_ERROR queue "the board" holds a packet that is not an item: `)
	other.send(pop(boardQueue))
	other.want(packet{"word", "payload"})
}

func TestAnItemIsHandedOutOnce(t *testing.T) {
	server := serveBoard(t, t.TempDir())
	s := dialAddr(t, server.board)
	const many, clients = 4000, 8
	var sent bytes.Buffer
	for i := range many {
		fmt.Fprintf(&sent, "update %d %d\n", i, i%7)
	}
	s.lines(sent.String(), strings.Repeat("OK\r\n", many))
	var mu sync.Mutex
	seen := make(map[string]int)
	var all sync.WaitGroup
	for range clients {
		c := dialAddr(t, server.board)
		all.Go(func() {
			for {
				_, _ = c.conn.Write([]byte("next\nnext\nnext\n"))
				for range 3 {
					item := ""
					for b := make([]byte, 1); !strings.HasSuffix(item, "\n"); item += string(b) {
						if _, err := c.conn.Read(b); err != nil {
							t.Error(err)
							return
						}
					}
					if item == "-1\r\n" {
						return
					}
					mu.Lock()
					seen[item]++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	for item, n := range seen {
		if n != 1 {
			t.Errorf("item %q was handed out %d times", item, n)
		}
	}
	if len(seen) != many {
		t.Errorf("%d items were handed out, expected %d", len(seen), many)
	}
}

func TestADrainedBoardHasAnsweredWhatArrived(t *testing.T) {
	server := serveBoard(t, t.TempDir())
	s := dialAddr(t, server.board)
	s.lines("update 1 1\n", "OK\r\n")
	const many = 3000
	s.send(bytes.Repeat([]byte("UPDATE 1 1\n"), many), []byte("UPDATE 1"))
	server.drain()
	s.lines("", strings.Repeat("+OK\r\n", many))
	s.wantEnd()
	server.stop(t)
	again := dialAddr(t, serveBoard(t, server.data).board)
	again.lines("SCORE 1\n", fmt.Sprintf("+%d\r\n", many+1))
}
