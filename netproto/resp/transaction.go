package resp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// transaction is what MULTI has begun.
type transaction struct {
	on       bool
	dirty    bool // a command was refused: EXEC does nothing
	commands []queued
	held     int // bytes of the commands
	changes  int // what they bring or delete, see command.changes
	prepared int // commands whose prepare is done: each once, so that it ends whatever others change
	sweeps   int // see maxSweeps
}

// queued is a command that EXEC will run. It has its own copy of the arguments.
type queued struct {
	command *command
	args    [][]byte
}

const (
	// maxQueued is the most bytes of the commands of one transaction, besides what a payload may have
	// more than others. maxWatched is those of the names that one connection watches.
	maxQueued  = wire.MaxRequest
	maxWatched = wire.MaxRequest
	// What a queued command and each of its arguments take besides their bytes.
	queuedOverhead = 64
	argOverhead    = 32
)

func transactionCommands() []command {
	return []command{
		{name: "multi", flags: flagLocal | flagFast | flagAtOnce, run: multi},
		{name: "exec", flags: flagLocal | flagAtOnce, run: exec},
		{name: "discard", flags: flagLocal | flagFast | flagAtOnce, run: discard},
		{name: "watch", flags: flagFast | flagAtOnce, right: access.Look, run: watch},
		{name: "unwatch", flags: flagLocal | flagFast, run: unwatch},
	}
}

func multi(s *session, _ *broker.Tx, _ [][]byte) error {
	if s.multi.on {
		return failure("ERR MULTI calls can not be nested")
	}
	s.multi.on = true
	return s.ok()
}

// queue notes a command for EXEC.
func (s *session) queue(c *command, args [][]byte) {
	m := &s.multi
	if m.dirty {
		s.simple("QUEUED")
		return
	}
	size, most := heldSize(args), maxQueued+s.protocol.config.MaxPayload-wire.MaxArg
	if m.held+size > most {
		m.dirty = true
		s.error(fmt.Sprintf("ERR transaction too large: its commands may take %d bytes", most))
		return
	}
	if m.changes += c.changes(args); m.changes > broker.MaxChanged {
		m.dirty = true
		s.error(fmt.Sprintf("ERR transaction too large: its commands may change %d elements and names", broker.MaxChanged))
		return
	}
	s.peer.Hold(size)
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
	s.peer.Hold(-s.multi.held)
	s.multi = transaction{}
	s.unwatch(tx)
}

// unwatch ends the watches.
func (s *session) unwatch(tx *broker.Tx) {
	s.peer.Hold(-s.watched)
	s.watched = 0
	tx.Unwatch(s.consumer)
}

func discard(s *session, tx *broker.Tx, _ [][]byte) error {
	if !s.multi.on {
		return failure("ERR DISCARD without MULTI")
	}
	s.discard(tx)
	return s.ok()
}

func watch(s *session, tx *broker.Tx, args [][]byte) error {
	if s.multi.on {
		return failure("ERR WATCH inside MULTI is not allowed")
	}
	for _, name := range args[1:] {
		size := tx.Watch(s.consumer, name)
		s.peer.Hold(size)
		if s.watched += size; s.watched > maxWatched {
			return failure(fmt.Sprintf("ERR too many names are watched on one connection: they may take %d bytes", maxWatched))
		}
	}
	return s.ok()
}

func unwatch(s *session, tx *broker.Tx, _ [][]byte) error {
	s.unwatch(tx)
	return s.ok()
}

func exec(s *session, tx *broker.Tx, _ [][]byte) error {
	const aborted = "EXECABORT Transaction discarded because of"
	switch {
	case !s.multi.on:
		return failure("ERR EXEC without MULTI")
	case s.multi.dirty:
		s.discard(tx)
		return failure(aborted + " previous errors.")
	}
	left := broker.PrepareSlice
	for t := &s.multi; t.prepared < len(t.commands); t.prepared++ {
		q, done, more := t.commands[t.prepared], 0, false
		if q.command.prepare != nil {
			// What refuses this Atomic refuses that of the commands, too, which replies with it.
			_ = tx.Atomic(func() error { done, more = q.command.prepare(tx, q.args); return nil })
		}
		if more || left <= 0 {
			return errUnfinished
		}
		left -= done
	}
	err := s.storable(tx)
	if err == nil {
		err = tx.Atomic(s.exec)
	}
	if errors.Is(err, broker.ErrClosed) {
		return err
	}
	s.discard(tx)
	if err != nil {
		return failure(aborted + ": " + err.Error())
	}
	return nil
}

// storable refuses a transaction that stores or claims more than there is room for: otherwise some
// of its commands would be carried out.
func (s *session) storable(tx *broker.Tx) error {
	if s.multi.adds() {
		if err := tx.CanStore(); err != nil {
			return err
		}
	}
	for _, q := range s.multi.commands {
		if q.command.flags&flagClaims == 0 {
			continue
		}
		queues, _ := takeQueues(q.args)
		for _, name := range queues {
			if err := tx.CanClaim(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// adds says that one of the commands stores more.
func (t *transaction) adds() bool {
	return slices.ContainsFunc(t.commands, func(q queued) bool { return q.command.flags&flagAdds != 0 })
}

// madeKiB is what a KiB costs of a reply that is not read but made, as CLIENT LIST. repliedName is
// what a name costs more that KEYS, SCAN or QUEUES replies with. See broker.MaxLooks.
const (
	madeKiB     = 1500
	repliedName = 11
)

var errLooks = worded(broker.ErrTooManyLooks)

// maxSweeps is how often the commands of a transaction are made again because packets have expired.
const maxSweeps = 15

// runQueued runs the present command of the transaction. A transaction cannot wait for the next
// turn, so ErrSweeping is an error of its only where very many packets have expired.
func (s *session) runQueued(tx *broker.Tx) (err error) {
	for {
		if err = tx.Atomic(s.run); err != broker.ErrSweeping || s.multi.sweeps == maxSweeps {
			return err
		}
		s.peer.Out = s.peer.Out[:s.commandStart]
		s.multi.sweeps++
	}
}

// runTransaction runs the commands of the transaction inside Atomic. An error of one is its reply,
// and the others go on.
func (s *session) runTransaction() error {
	tx := s.tx
	if tx.WatchBroken(s.consumer) {
		return s.nullArray()
	}
	tx.Unwatch(s.consumer)
	s.inExec = true
	s.array(len(s.multi.commands))
	for _, q := range s.multi.commands {
		s.cmd, s.args, s.commandStart = q.command, q.args, len(s.peer.Out)
		refusal := s.forbidden(q.command, q.args) // the users may have changed
		if refusal == "" && (q.command.looks() || q.command.flags&flagCostly != 0) && !tx.MayLook() {
			refusal = errLooks
		}
		if refusal != "" {
			s.error(refusal)
		} else if err := s.runQueued(tx); err != nil { // a command is refused whole or done whole
			s.fail(err)
		} else {
			s.audit(q.command, q.args)
		}
		if q.command.looks() && q.command.flags&flagLocal != 0 {
			tx.Looked((len(s.peer.Out) - s.commandStart) * madeKiB >> 10)
		}
	}
	s.inExec = false
	return nil
}
