package resp

import (
	"math"
	"math/big"

	"github.com/holdfast-queue/holdfast/broker"
)

// A list's left end is the newest of its queue, its right end the oldest.
const (
	left  = broker.Newest
	right = broker.Oldest
)

// endArg reads LEFT or RIGHT.
func endArg(arg []byte) broker.End {
	switch {
	case is(arg, "left"):
		return left
	case is(arg, "right"):
		return right
	}
	panic(failure(errSyntax))
}

func popFrom(end broker.End) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		if len(args) > 3 {
			return failure(wrongArity(s.cmd.name))
		}
		if len(args) < 3 {
			f, err := tx.Pop(args[1], broker.Selection{End: end})
			return s.packets(formBulk, f, err)
		}
		count := countArg(args[2], 0, "ERR value is out of range, must be positive")
		if count > 0 {
			f, err := tx.Pop(args[1], broker.Selection{End: end, Count: int(min(count, broker.MaxChanged))})
			return s.packets(formArray, f, err)
		}
		if n, err := tx.Len(args[1]); err != nil || n > 0 {
			s.array(0)
			return err
		}
		return s.nullArray()
	}
}

// multiPop is what the commands take that pop from the first of some lists that has elements.
type multiPop struct {
	keys    [][]byte
	end     broker.End
	count   int64    // 0: one that is no array
	timeout [][]byte // one argument, or none: it does not wait
}

// parse reads the arguments of LMPOP and BLMPOP behind the timeout.
func (p *multiPop) parse(args [][]byte) {
	n := countArg(args[0], 1, "ERR numkeys should be greater than 0")
	switch {
	case n >= int64(len(args)-1):
		refuse(errSyntax)
	case n > broker.MaxSubscriptions:
		refuse(errNames)
	}
	p.keys, args, p.count = args[1:n+1], args[n+1:], 1
	p.end = endArg(args[0])
	switch {
	case len(args) == 1:
		return
	case len(args) < 3 || !is(args[1], "count"):
		refuse(errSyntax)
	}
	p.count = countArg(args[2], 1, "ERR count should be greater than 0")
	if len(args) > 3 {
		refuse(errSyntax)
	}
}

// pop replies with the name of the first of the lists that has elements, and those that it takes.
// If all are empty it waits, or replies that there is nothing.
func (p *multiPop) pop(s *session, tx *broker.Tx) error {
	until := untilArg(tx, p.timeout)
	selection := broker.Selection{End: p.end, Count: int(min(p.count, broker.MaxChanged)), MustFind: true}
	form := formArray
	if p.count == 0 {
		form = formBulk
	}
	for _, name := range s.parked.from(p.keys) {
		f, err := tx.Pop(name, selection)
		switch {
		case err == nil:
			s.array(2)
			s.bulk(name)
			return s.packets(form, f, nil)
		case err != broker.ErrNothing:
			return err
		}
	}
	if len(p.timeout) == 0 || s.inExec {
		return s.nullArray()
	}
	return s.park(tx, broker.Parking{Queues: p.keys, Until: until})
}

func blockPopFrom(end broker.End) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		last := len(args) - 1
		if last-1 > broker.MaxSubscriptions {
			return failure(errNames)
		}
		p := multiPop{keys: args[1:last], end: end, timeout: args[last:]}
		return p.pop(s, tx)
	}
}

func lmpop(s *session, tx *broker.Tx, args [][]byte) error {
	var p multiPop
	p.parse(args[1:])
	return p.pop(s, tx)
}

func blmpop(s *session, tx *broker.Tx, args [][]byte) error {
	p := multiPop{timeout: args[1:2]}
	p.parse(args[2:])
	return p.pop(s, tx)
}

// rpoplpush is RPOPLPUSH and BRPOPLPUSH.
func rpoplpush(s *session, tx *broker.Tx, args [][]byte) error {
	return s.move(tx, right, left, args[3:])
}

// lmove is LMOVE and BLMOVE.
func lmove(s *session, tx *broker.Tx, args [][]byte) error {
	return s.move(tx, endArg(args[3]), endArg(args[4]), args[5:])
}

// move moves an element from the first list that the present command names to the second, and
// replies with it. If there is none it waits, or replies that there is nothing.
func (s *session) move(tx *broker.Tx, from, to broker.End, timeout [][]byte) error {
	until := untilArg(tx, timeout)
	f, err := tx.MoveEnd(s.args[1], from, s.args[2], to)
	if err != nil || len(f.Packets) > 0 || len(timeout) == 0 || s.inExec {
		return s.packets(formBulk, f, err)
	}
	return s.park(tx, broker.Parking{Queues: s.args[1:2], Until: until})
}

const errTimeout = "ERR timeout is not a float or out of range"

// untilArg reads a timeout in seconds, which it rounds up to milliseconds, and returns the moment
// of its end on the steady clock, 0 for never. A command that does not wait has no such argument.
func untilArg(tx *broker.Tx, timeout [][]byte) int64 {
	if len(timeout) == 0 || string(timeout[0]) == "0" {
		return 0
	}
	x := floatArg(timeout[0], errTimeout)
	if x.Sign() < 0 {
		refuse("ERR timeout is negative")
	}
	ms, accuracy := x.Mul(x, big.NewFloat(1000)).Int64()
	if accuracy == big.Below && ms < math.MaxInt64 {
		ms++
	}
	switch {
	case ms == 0:
		return 0
	case ms > math.MaxInt64-tx.Steady():
		refuse(errTimeout)
	}
	return tx.Steady() + ms
}
