package crash

import (
	"bytes"
	"fmt"
	"strconv"
)

// boardOp is one request of a boardClient.
type boardOp struct {
	item int64 // the item of an update; 0 for a request for the next item
	dialect
}

// dialect is one of the two dialects of barbershop: its requests, and how its replies begin.
type dialect struct{ update, next, ok, sign string }

func v1() dialect { return dialect{"update", "next", "OK", ""} }
func v2() dialect { return dialect{"UPDATE", "NEXT", "+OK", "+"} }

// boardClient is a client of the board, in both dialects.
type boardClient struct{ pipeline[boardOp] }

const (
	// itemsPerClient is how many items each client updates: few enough to be taken again and again,
	// and enough for several with one score.
	itemsPerClient = 250
	// maxBy is the most that an update of the load adds. A sum of a few updates then tells which
	// they were.
	maxBy = 1000
)

func (b *boardClient) connect() (err error) {
	b.link, err = b.r.server.dial(boardListener)
	return err
}

func (b *boardClient) work() { b.follow("a client of the board", b.build, b.answer) }

// hangUp leaves the unanswered requests to checkBoard.
func (b *boardClient) hangUp(endKind) int {
	b.link.conn.Close()
	return len(b.unanswered())
}

// build makes the next pipeline.
func (b *boardClient) build(requests int) {
	d := v1()
	if b.rng.IntN(2) == 0 {
		d = v2()
	}
	for range requests {
		op := boardOp{dialect: d}
		if b.rng.IntN(100) < 85 { // so that most items are on the board, and most had several updates
			op.item = b.r.board.first(b.number) + b.rng.Int64N(int64(b.r.board.share))
			by := 1 + b.rng.Uint32N(maxBy)
			b.r.board.of(op.item).add(by, b.asked)
			b.link.addLine(fmt.Sprintf("%s %d %d", d.update, op.item, by))
		} else {
			b.link.addLine(d.next)
		}
		b.ops = append(b.ops, op)
	}
}

// answer reads the next reply.
func (b *boardClient) answer() error {
	op := b.ops[b.done]
	reply, err := b.link.receiveLine()
	if err != nil {
		return err
	}
	now := b.r.ledger.now()
	if op.item == 0 {
		number, err := op.number(reply)
		if err != nil {
			return err
		}
		if number != missing {
			b.r.handedOut(number, handout{b.asked, now})
			b.r.ops[ofBoard].Add(1)
		}
	} else {
		if string(reply) != op.ok {
			return fmt.Errorf("the answer to an update of item %d is %q", op.item, reply)
		}
		b.r.board.of(op.item).ack(now)
		b.r.ops[ofBoard].Add(1)
	}
	b.done++
	return nil
}

// number reads an answer that is a number, or missing.
func (d dialect) number(reply []byte) (int64, error) {
	text, signed := bytes.CutPrefix(reply, []byte(d.sign))
	number, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || !signed || bytes.HasPrefix(text, []byte{'+'}) {
		return 0, fmt.Errorf("the answer to a request for a number is %q", reply)
	}
	return number, nil
}
