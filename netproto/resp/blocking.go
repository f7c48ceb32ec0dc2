package resp

import (
	"math"
	"math/big"

	"github.com/holdfast-queue/holdfast/broker"
)

const (
	errTimeout         = "ERR timeout is not a float or out of range"
	errTimeoutNegative = "ERR timeout is negative"
)

// untilArg reads a timeout in seconds and returns the moment of its end on the steady clock, 0 for
// never.
func untilArg(tx *broker.Tx, arg []byte) (int64, error) {
	ms, err := timeoutArg(arg)
	switch {
	case err != nil || ms == 0:
		return 0, err
	case ms > math.MaxInt64-tx.Steady():
		return 0, failure(errTimeout)
	}
	return tx.Steady() + ms, nil
}

// timeoutArg reads a timeout in seconds and returns milliseconds, rounded up.
func timeoutArg(arg []byte) (int64, error) {
	if len(arg) == 1 && arg[0] == '0' {
		return 0, nil
	}
	x, ok := parseFloat(arg)
	switch {
	case !ok:
		return 0, failure(errTimeout)
	case x.Sign() < 0:
		return 0, failure(errTimeoutNegative)
	case x.IsInf():
		return 0, failure(errTimeout)
	}
	ms, accuracy := x.Mul(x, big.NewFloat(1000)).Int64()
	if accuracy == big.Below && ms < math.MaxInt64 {
		ms++
	}
	return ms, nil
}

// blockPop takes from the first list that has elements, or waits until one has.
func (s *session) blockPop(tx *broker.Tx, p multiPop, timeout []byte) error {
	until, err := untilArg(tx, timeout)
	if err != nil {
		return err
	}
	done, err := s.popFirst(tx, p)
	switch {
	case done || err != nil:
		return err
	case s.inExec:
		s.nullArray()
		return nil
	}
	return s.park(tx, broker.Parking{Queues: p.keys, Until: until})
}

func blockPopFrom(end broker.End) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		last := len(args) - 1
		if last-1 > broker.MaxSubscriptions {
			return failure(errNames)
		}
		return s.blockPop(tx, multiPop{keys: args[1:last], end: end}, args[last])
	}
}

func blmpop(s *session, tx *broker.Tx, args [][]byte) error {
	p, err := parseMultiPop(args[2:])
	if err != nil {
		return err
	}
	return s.blockPop(tx, p, args[1])
}

// blockMove moves an element from the list args[1] to args[2], or waits until there is one.
func (s *session) blockMove(tx *broker.Tx, args [][]byte, fromEnd, toEnd broker.End, timeout []byte) error {
	until, err := untilArg(tx, timeout)
	if err != nil {
		return err
	}
	ok, err := s.move(tx, args[1], fromEnd, args[2], toEnd)
	switch {
	case ok || err != nil:
		return err
	case s.inExec:
		s.null()
		return nil
	}
	return s.park(tx, broker.Parking{Queues: args[1:2], Until: until})
}

func brpoplpush(s *session, tx *broker.Tx, args [][]byte) error {
	return s.blockMove(tx, args, right, left, args[3])
}

func blmove(s *session, tx *broker.Tx, args [][]byte) error {
	fromEnd, toEnd, err := endArgs(args)
	if err != nil {
		return err
	}
	return s.blockMove(tx, args, fromEnd, toEnd, args[5])
}
