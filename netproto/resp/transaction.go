package resp

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdfast-queue/holdfast/broker"
)

// transaction is what MULTI has begun.
type transaction struct {
	on       bool
	dirty    bool // a command was refused: EXEC does nothing
	commands []queued
	held     int // bytes of the commands

	// What transactionRoom has found out; see largestAt and headValue.
	headValue int // the longest argument that may become a value in a head
	reach     int
	largest   map[ending]int
}

// queued is a command that EXEC will run. It has its own copy of the arguments.
type queued struct {
	command *command
	args    [][]byte
}

const (
	// maxQueued is the most bytes of the commands of one transaction.
	maxQueued = maxRequest
	// What a queued command and each of its arguments take besides their bytes.
	queuedOverhead = 64
	argOverhead    = 32
)

func transactionCommands() []command {
	return []command{
		{name: "multi", arity: 1, flags: flagLocal | flagFast | flagAtOnce, run: multi},
		{name: "exec", arity: 1, flags: flagLocal | flagAtOnce, run: exec},
		{name: "discard", arity: 1, flags: flagLocal | flagFast | flagAtOnce, run: discard},
		{name: "watch", arity: -2, flags: flagFast | flagAtOnce | flagShows, first: 1, last: -1, step: 1, run: watch},
		{name: "unwatch", arity: 1, flags: flagLocal | flagFast, run: unwatch},
	}
}

func multi(s *session, _ *broker.Tx, _ [][]byte) error {
	if s.multi.on {
		s.error("ERR MULTI calls can not be nested")
		return nil
	}
	s.multi.on = true
	s.ok()
	return nil
}

// queue notes a command for EXEC.
func (s *session) queue(c *command, args [][]byte) {
	m := &s.multi
	if m.dirty {
		s.simple("QUEUED")
		return
	}
	size := heldSize(args)
	if m.held+size > maxQueued || !s.protocol.reserveBytes(size) {
		m.dirty = true
		s.error(fmt.Sprintf("ERR transaction too large: its commands may take %d bytes, and those of all connections %d", maxQueued, maxHeld))
		return
	}
	m.held += size
	m.commands = append(m.commands, queued{c, copyArgs(args)})
	s.simple("QUEUED")
}

// heldSize is what a copy of the arguments of a request takes.
func heldSize(args [][]byte) int { return queuedOverhead + len(args)*argOverhead + bytesOf(args) }

func copyArgs(args [][]byte) [][]byte {
	all := make([]byte, 0, bytesOf(args))
	copied := make([][]byte, len(args))
	for i, a := range args {
		from := len(all)
		all = append(all, a...)
		copied[i] = all[from:len(all):len(all)]
	}
	return copied
}

// discard ends the transaction and the watches.
func (s *session) discard(tx *broker.Tx) {
	s.protocol.held -= s.multi.held
	s.multi = transaction{}
	tx.Unwatch(s.consumer)
}

func discard(s *session, tx *broker.Tx, _ [][]byte) error {
	if !s.multi.on {
		s.error("ERR DISCARD without MULTI")
		return nil
	}
	s.discard(tx)
	s.ok()
	return nil
}

func watch(s *session, tx *broker.Tx, args [][]byte) error {
	if s.multi.on {
		s.error("ERR WATCH inside MULTI is not allowed")
		return nil
	}
	for _, name := range args[1:] {
		if err := tx.Watch(s.consumer, name); err != nil {
			return err
		}
	}
	s.ok()
	return nil
}

func unwatch(s *session, tx *broker.Tx, _ [][]byte) error {
	tx.Unwatch(s.consumer)
	s.ok()
	return nil
}

func exec(s *session, tx *broker.Tx, _ [][]byte) error {
	const aborted = "EXECABORT Transaction discarded because of"
	switch {
	case !s.multi.on:
		s.error("ERR EXEC without MULTI")
		return nil
	case s.multi.dirty:
		s.discard(tx)
		s.error(aborted + " previous errors.")
		return nil
	}
	err := s.storable(tx)
	if err == nil {
		err = tx.Atomic(s.transactionRoom(tx), s.exec)
	}
	switch {
	case errors.Is(err, broker.ErrNoRoom), errors.Is(err, broker.ErrClosed):
		return err
	case err != nil:
		s.error(aborted + ": " + err.Error())
	}
	s.discard(tx)
	s.shows(tx, 0)
	return nil
}

// storable refuses a transaction that stores more while the disk is nearly full: otherwise some of
// its commands would be carried out.
func (s *session) storable(tx *broker.Tx) error {
	for _, q := range s.multi.commands {
		if q.command.flags&flagAdds != 0 {
			return tx.CanStore()
		}
	}
	return nil
}

// runTransaction runs the commands of the transaction inside Atomic. An error of one is its reply,
// and the others go on.
func (s *session) runTransaction() error {
	tx := s.tx
	if tx.WatchBroken(s.consumer) {
		s.nullArray()
		return nil
	}
	tx.Unwatch(s.consumer)
	s.inExec = true
	s.array(len(s.multi.commands))
	for _, q := range s.multi.commands {
		s.cmd, s.args, s.commandStart = q.command, q.args, len(s.out)
		if err := s.runCommand(); err != nil {
			s.fail(err)
		}
	}
	s.inExec = false
	return nil
}

// transactionRoom is what the commands may bring together. A room is asked for before the first of
// them runs, so what one brings is added where another may depend on it: a move counts with the
// largest element that is there or comes, and a command that grows a value (flagGrow) with the
// largest such room and all arguments. Elements that come may be taken again.
//
// A command may get beyond that all the same, behind a RENAME or a push for example. If the batch
// has no room for that either, it changes nothing and replies with an error.
func (s *session) transactionRoom(tx *broker.Tx) (all broker.Room) {
	s.multi.reach = 0 // after ErrNoRoom the lists may be others
	var move, grow broker.Room
	moves, grows, largest, brought, pushed := 0, 0, 0, 0, 0
	for _, q := range s.multi.commands {
		for _, a := range q.args {
			largest = max(largest, len(a))
			brought += len(a)
			if len(a) <= maxHeadValue {
				s.multi.headValue = max(s.multi.headValue, len(a))
			}
		}
	}
	defer tx.Select(s.consumer, s.consumer.Database())
	for _, q := range s.multi.commands {
		if q.command.name == "select" {
			if db, err := databaseArg(q.args[1]); err == nil {
				tx.Select(s.consumer, db) // whose names those behind it mean
			}
		}
		room := q.command.roomFor(s, tx, q.args)
		if q.command.flags&(flagPush|flagMove) != 0 {
			pushed += room.Records
		}
		switch {
		case q.command.flags&flagMove != 0:
			move = most(move, room)
			moves++
		case q.command.flags&flagGrow != 0:
			grow = most(grow, room)
			grows++
		default:
			all = all.Plus(room)
		}
	}
	move.Bytes += largest
	grow.Bytes += brought
	all = all.Plus(times(move, moves)).Plus(times(grow, grows))
	if s.multi.takes() > 0 {
		all.Deletes += pushed
	}
	all.Elastic = true
	return all
}

// most is room enough for either of two.
func most(a, b broker.Room) broker.Room {
	return broker.Room{Records: max(a.Records, b.Records), Bytes: max(a.Bytes, b.Bytes), Deletes: max(a.Deletes, b.Deletes)}
}

func times(r broker.Room, n int) broker.Room {
	return broker.Room{Records: r.Records * n, Bytes: r.Bytes * n, Deletes: r.Deletes * n}
}

// largestAt is the size of the largest element that a move of this request may take from an end of
// a list. In a transaction the commands before it may have taken others.
func (s *session) largestAt(tx *broker.Tx, list []byte, end broker.End) int {
	m := &s.multi
	if !m.on {
		return tx.LargestAt(list, end, 1)
	}
	if m.reach == 0 {
		m.reach, m.largest = m.takes(), make(map[ending]int)
	}
	at := ending{s.consumer.Database(), string(list), end}
	size, ok := m.largest[at]
	if !ok {
		size = tx.LargestAt(list, end, m.reach)
		m.largest[at] = size
	}
	return size
}

// ending is one end of a list.
type ending struct {
	db   uint8
	list string
	end  broker.End
}

// takes is the most elements that the commands take from one end of a list.
func (m *transaction) takes() (n int) {
	for _, q := range m.commands {
		switch {
		case q.command.flags&flagMove != 0:
			n++
		case q.command.flags&flagWrite != 0 && q.command.flags&flagAdds == 0:
			return math.MaxInt // it may take any number
		}
	}
	return n
}
