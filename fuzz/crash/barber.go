package crash

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// boardOp is one request of a barber.
type boardOp struct {
	item  int64 // the item of an update; 0: a request for the next item
	upper bool  // the dialect it was sent in
}

// barber is one connection to the board, in both dialects, a pipeline of random length at a time. While
// it runs all of it belongs to its goroutine, which ends with the connection or when the run's load is
// over; then it belongs to the harness.
type barber struct {
	r      *run
	number int
	rng    *rand.Rand
	line   *lineLink
	ops    []boardOp // what was sent; those before done are answered
	done   int
	asked  int64 // when they were sent
}

const (
	// itemsOfBarber is how many items each barber updates: few enough to be called again and again, and
	// enough for pools of several.
	itemsOfBarber = 250
	// maxBy is the most that an update of the load adds: sums of a few updates then tell which they were.
	maxBy = 1000
)

// work loads the server until it is gone or the load is over. It leaves in ops[done:] what was sent and
// not answered.
func (b *barber) work() {
	b.ops, b.done = b.ops[:0], 0
	for {
		if !b.r.gate.enter() {
			return
		}
		b.build()
		err := b.line.send()
		b.r.gate.leave()
		for err == nil && b.done < len(b.ops) {
			err = b.answer()
		}
		if err != nil {
			b.r.broken("a barber", err)
			return
		}
	}
}

// build makes the next pipeline.
func (b *barber) build() {
	b.ops, b.done = b.ops[:0], 0
	n := 1 + b.rng.IntN(maxPipeline)
	if b.rng.IntN(4) == 0 {
		n = 1
	}
	b.asked = b.r.ledger.now()
	upper := b.rng.IntN(2) == 0
	for range n {
		op := boardOp{upper: upper}
		if b.rng.IntN(100) < 85 { // so most items are on the board, and most have been shifted
			op.item = b.r.board.first(b.number) + b.rng.Int64N(int64(b.r.board.share))
			by := 1 + b.rng.Uint32N(maxBy)
			b.r.board.of(op.item).add(by, b.asked)
			b.line.addUpdate(upper, op.item, by)
		} else {
			b.line.addNext(upper)
		}
		b.ops = append(b.ops, op)
	}
}

// answer reads the next reply.
func (b *barber) answer() error {
	op := b.ops[b.done]
	reply, err := b.line.receive()
	if err != nil {
		return err
	}
	now := b.r.ledger.now()
	if op.item == 0 {
		number, err := parseNumber(reply, op.upper)
		if err != nil {
			return err
		}
		if number != missing {
			b.r.handed(number, handout{b.asked, now})
			b.r.called.Add(1)
		}
	} else {
		if string(reply) != okOf(op.upper) {
			return fmt.Errorf("the answer to an update of item %d is %q", op.item, reply)
		}
		b.r.board.of(op.item).ack(now)
		b.r.shifted.Add(1)
	}
	b.done++
	return nil
}

// unanswered returns what was sent without a reply.
func (b *barber) unanswered() []boardOp { return b.ops[b.done:] }

func okOf(upper bool) string {
	if upper {
		return "+OK"
	}
	return "OK"
}

// parseNumber reads an answer that is a number, or missing.
func parseNumber(reply []byte, upper bool) (int64, error) {
	text, signed := bytes.CutPrefix(reply, []byte{'+'})
	number, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || signed != upper {
		return 0, fmt.Errorf("the answer to a request for a number is %q", reply)
	}
	return number, nil
}

// lineLink is a connection that speaks in lines, for one goroutine.
type lineLink struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

// dialBoard connects to the board of the server as soon as there is one.
func (r *run) dialBoard() (*lineLink, error) {
	addr, err := r.server.Board(deadline)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &lineLink{conn: conn, in: bufio.NewReader(conn)}, nil
}

func (l *lineLink) add(line string) { l.out = append(append(l.out, line...), '\r', '\n') }

func (l *lineLink) addNext(upper bool) {
	if upper {
		l.add("NEXT")
	} else {
		l.add("next")
	}
}

func (l *lineLink) addUpdate(upper bool, item int64, by uint32) {
	word := "update"
	if upper {
		word = "UPDATE"
	}
	l.out = fmt.Appendf(l.out, "%s %d %d\r\n", word, item, by)
}

// send writes what was added.
func (l *lineLink) send() error {
	_, err := l.conn.Write(l.out)
	l.out = l.out[:0]
	return err
}

// receive reads one line without its end; it is valid until the next call. It returns io.EOF only if
// the stream ended between two lines.
func (l *lineLink) receive() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	if errors.Is(err, io.EOF) && len(line) > 0 {
		return nil, errCut
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'}), nil
}
