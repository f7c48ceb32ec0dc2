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

// moveArgs reads the ids and the destination of QMOVE.
func moveArgs(args [][]byte) (ids []broker.ID, to []byte, err error) {
	last := len(args) - 2
	if !is(args[last], "to") {
		return nil, nil, failure(fmt.Sprintf("ERR TO: expected it before the last argument, as QMOVE with ids takes no options, got %q", quoted(args[last])))
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

func qdrop(s *session, tx *broker.Tx, args [][]byte) error {
	if t := tx.Type(args[1]); t != broker.TypeNone && t != broker.TypeList {
		return broker.ErrWrongType
	}
	ok, err := tx.Drop(args[1])
	if err != nil {
		return err
	}
	if !ok {
		return broker.ErrUnknownQueue
	}
	s.ok()
	return nil
}

func qclose(s *session, tx *broker.Tx, args [][]byte) error {
	closed, err := tx.Close(args[1])
	if err == nil {
		s.bool(closed)
	}
	return err
}

// errUnfinished is what a command with flagSlices returns until its last slice.
var errUnfinished = errors.New("a slice is done, the next one follows")

// slice makes one slice of a change to many packets, which begin makes from the options. The
// command is called again until nothing is left; then it replies how many packets were changed, or
// would be with DRYRUN.
func (s *session) slice(tx *broker.Tx, args [][]byte, takes optionSet, begin func(o *options) *broker.Bulk) error {
	if s.sliced == nil {
		o, err := parseOptions(args, takes|filterOptions|oneOf(optDryRun))
		if err != nil {
			return err
		}
		s.sliced = begin(&o)
		s.sliced.Filter, s.sliced.DryRun = o.tagFilter(), o.has(optDryRun)
	}
	more, err := s.sliced.Slice(tx)
	if more && err == nil {
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
	return s.slice(tx, args[2:], oneOf(optState), func(o *options) *broker.Bulk {
		return broker.Purge(bytes.Clone(args[1]), o.state)
	})
}

func qharvest(s *session, tx *broker.Tx, args [][]byte) error {
	return s.slice(tx, args[2:], oneOf(optOlder), func(o *options) *broker.Bulk {
		return broker.Harvest(bytes.Clone(args[1]), o.number(optOlder, 0))
	})
}

func qredrive(s *session, tx *broker.Tx, args [][]byte) error {
	return s.slice(tx, args[2:], oneOf(optCount, optTo), func(o *options) *broker.Bulk {
		return broker.Redrive(bytes.Clone(args[1]), int(o.number(optCount, 0)), bytes.Clone(o.text(optTo)))
	})
}

// moveForm returns the form of QMOVE that names no packets, if that is meant: TO follows the queue
// then.
func moveForm(args [][]byte) *command {
	if is(args[2], "to") {
		return &moveMany
	}
	return nil
}

// moveMany is QMOVE queue TO other, with options.
var moveMany = command{name: "qmove", flags: flagWrite | flagSlices, run: func(s *session, tx *broker.Tx, args [][]byte) error {
	return s.slice(tx, args[4:], oneOf(optState, optCount), func(o *options) *broker.Bulk {
		return broker.Move(bytes.Clone(args[1]), o.state, int(o.number(optCount, 0)), bytes.Clone(args[3]))
	})
}}
