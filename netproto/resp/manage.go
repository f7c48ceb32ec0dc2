package resp

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/holdfast-queue/holdfast/broker"
)

func qdel(s *session, tx *broker.Tx, args [][]byte) error {
	ids, err := idArgs(args[2:])
	if err != nil {
		return err
	}
	n, err := tx.DeletePackets(args[1], ids)
	if err == nil {
		s.int(int64(n))
	}
	return err
}

func qdelRoom(_ *session, _ *broker.Tx, args [][]byte) broker.Room {
	return broker.Room{Deletes: min(len(args)-2, broker.MaxCount)}
}

// moveArgs reads the ids and the destination of QMOVE.
func moveArgs(args [][]byte) (ids []broker.ID, to []byte, err error) {
	last := len(args) - 2
	if !is(args[last], "to") {
		return nil, nil, failure(fmt.Sprintf("ERR TO: expected it before the last argument, got %q", quoted(args[last])))
	}
	ids, err = idArgs(args[2:last])
	return ids, args[last+1], err
}

func qmove(s *session, tx *broker.Tx, args [][]byte) error {
	ids, to, err := moveArgs(args)
	if err != nil {
		return err
	}
	n, err := tx.MovePackets(args[1], ids, to)
	if err == nil {
		s.int(int64(n))
	}
	return err
}

func qmoveRoom(_ *session, tx *broker.Tx, args [][]byte) broker.Room {
	ids, to, err := moveArgs(args)
	if err != nil {
		return broker.Room{}
	}
	return tx.MoveRoom(args[1], ids, to)
}

// prioArgs reads the id and the priority of QPRIO.
func prioArgs(args [][]byte) (id broker.ID, priority uint32, err error) {
	if id, err = idArg(args[2]); err != nil {
		return 0, 0, err
	}
	n, err := numberArg("n", args[3], 0, math.MaxUint32)
	return id, uint32(n), err
}

func qprio(s *session, tx *broker.Tx, args [][]byte) error {
	id, priority, err := prioArgs(args)
	if err != nil {
		return err
	}
	ok, err := tx.SetPriority(args[1], id, priority)
	switch {
	case errors.Is(err, broker.ErrNoKey):
		return failure(`ERR n: expected a number from 1 on, as the packet has no key to go with, got "0"`)
	case err != nil:
		return err
	}
	s.bool(ok)
	return nil
}

func qprioRoom(_ *session, tx *broker.Tx, args [][]byte) broker.Room {
	id, _, err := prioArgs(args)
	if err != nil {
		return broker.Room{}
	}
	return tx.PriorityRoom(args[1], id)
}

func qdrop(s *session, tx *broker.Tx, args [][]byte) error {
	switch tx.Type(args[1]) {
	case broker.TypeNone:
		return broker.ErrUnknownQueue
	case broker.TypeList:
	default:
		return broker.ErrWrongType
	}
	if _, err := tx.Delete(args[1]); err != nil {
		return err
	}
	s.ok()
	return nil
}

// errUnfinished is what a command with flagSlices returns until its last slice.
var errUnfinished = errors.New("a slice is done, the next one follows")

// slice makes one slice of a change to many packets, which begin makes. The command is called again
// until nothing is left; then it replies how many packets were changed.
func (s *session) slice(tx *broker.Tx, begin func() *broker.Bulk) error {
	if s.sliced == nil {
		s.sliced = begin()
	}
	more, err := s.sliced.Slice(tx)
	switch {
	case errors.Is(err, broker.ErrNoRoom):
		return err
	case more && err == nil:
		return errUnfinished
	}
	done := s.sliced.Done
	s.sliced = nil
	if err == nil {
		s.int(int64(done))
	}
	return err
}

func qpurge(s *session, tx *broker.Tx, args [][]byte) error {
	o, err := parseOptions(args[2:], oneOf(optState, optDryRun))
	switch {
	case err != nil:
		return err
	case o.has(optDryRun):
		return tx.Atomic(broker.Room{}, func() error { return s.countPackets(tx, args[1], o.state) })
	}
	return s.slice(tx, func() *broker.Bulk { return broker.Purge(bytes.Clone(args[1]), o.state) })
}

// countPackets replies how many packets of a queue are in a state, or in any if that is 0.
func (s *session) countPackets(tx *broker.Tx, queue []byte, state broker.State) error {
	q, _, err := tx.QueueStats(queue)
	if err != nil {
		return err
	}
	n := 0
	for of, packets := range map[broker.State]int{
		broker.Ready: q.Ready + q.Hidden, broker.Delayed: q.Delayed, broker.Claimed: q.Claimed, broker.Dead: q.Dead, broker.Done: q.Done,
	} {
		if state == of || state == 0 {
			n += packets
		}
	}
	s.int(int64(n))
	return nil
}

func qharvest(s *session, tx *broker.Tx, args [][]byte) error {
	o, err := parseOptions(args[2:], oneOf(optOlder))
	if err != nil {
		return err
	}
	return s.slice(tx, func() *broker.Bulk { return broker.Harvest(bytes.Clone(args[1]), o.number(optOlder, 0)) })
}

func qredrive(s *session, tx *broker.Tx, args [][]byte) error {
	o, err := parseOptions(args[2:], oneOf(optCount, optTo))
	if err != nil {
		return err
	}
	return s.slice(tx, func() *broker.Bulk {
		return broker.Redrive(bytes.Clone(args[1]), int(o.number(optCount, 0)), bytes.Clone(o.text(optTo)))
	})
}
