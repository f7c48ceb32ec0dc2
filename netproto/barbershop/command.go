package barbershop

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/holdfast-queue/holdfast/broker"
)

// command carries out the line in s.words and appends its reply. It returns an error only if the
// broker has closed.
func (s *session) command() error {
	tx := s.tx
	if s.words.n == 0 {
		s.unknown()
		return nil
	}
	switch string(s.words.at[0]) {
	case "update": // update <item> <score>
		return s.update(tx)
	case "next": // next
		return s.next(tx)
	case "stats": // stats
		return s.stats(tx)
	case "UPDATE": // UPDATE <item> <score>
		return s.v2Update(tx)
	case "NEXT": // NEXT
		return s.v2Next(tx)
	case "PEEK": // PEEK
		return s.peek(tx)
	case "SCORE": // SCORE <item>
		return s.score(tx)
	case "INFO": // INFO
		return s.info(tx)
	}
	s.unknown()
	return nil
}

// The commands of the first dialect, the document's.

func (s *session) update(tx *broker.Tx) error {
	if s.words.n != 3 {
		s.clientError("wrong number of words: expected update <item> <score>")
		return nil
	}
	item, ok := parseNumber(s.words.at[1])
	if !ok {
		s.clientError("item is not a number: expected digits, at most 4294967295")
		return nil
	}
	score, ok := parseNumber(s.words.at[2])
	if !ok {
		s.clientError("score is not a number: expected digits, at most 4294967295")
		return nil
	}
	if ok, err := s.add(tx, item, score); !ok {
		return err
	}
	s.peer.Out = append(s.peer.Out, "OK\r\n"...)
	return nil
}

func (s *session) next(tx *broker.Tx) error {
	if s.words.n != 1 {
		s.clientError("wrong number of words: expected next alone")
		return nil
	}
	item, ok, err := s.take(tx)
	if !ok {
		return err
	}
	s.peer.Out = append(append(s.peer.Out, item...), "\r\n"...)
	return nil
}

func (s *session) stats(tx *broker.Tx) error {
	if s.words.n != 1 {
		s.clientError("wrong number of words: expected stats alone")
		return nil
	}
	c, err := tx.QueueCounts(s.queue)
	if err != nil {
		return s.refuse(err)
	}
	items, pools := uint64(c.Selectable), uint64(c.Priorities)
	s.stat("STAT uptime ", s.uptime())
	s.peer.Out = append(append(append(s.peer.Out, "STAT version "...), s.protocol.Version...), "\r\n"...)
	s.stat("STAT updates ", s.updates())
	s.stat("STAT items ", items)
	s.stat("STAT items_gc ", items) // nothing waits to be collected here
	s.stat("STAT pools ", pools)
	s.stat("STAT pools_gc ", pools)
	s.peer.Out = append(s.peer.Out, "END\r\n"...)
	return nil
}

// The commands of the second dialect.

func (s *session) v2Update(tx *broker.Tx) error {
	if s.words.n != 3 {
		s.unknown()
		return nil
	}
	item, ok := parseNumber(s.words.at[1])
	if !ok || item == 0 {
		s.peer.Out = append(s.peer.Out, "-ERROR INVALID ITEM ID\r\n"...)
		return nil
	}
	score, ok := parseNumber(s.words.at[2])
	if !ok || score == 0 {
		s.peer.Out = append(s.peer.Out, "-ERROR INVALID SCORE\r\n"...)
		return nil
	}
	if ok, err := s.add(tx, item, score); !ok {
		return err
	}
	s.peer.Out = append(s.peer.Out, "+OK\r\n"...)
	return nil
}

func (s *session) v2Next(tx *broker.Tx) error {
	if s.words.n != 1 {
		s.unknown()
		return nil
	}
	item, ok, err := s.take(tx)
	if !ok {
		return err
	}
	s.plus(item)
	return nil
}

func (s *session) peek(tx *broker.Tx) error {
	if s.words.n != 1 {
		s.unknown()
		return nil
	}
	key, ok, err := tx.PeekKey(s.queue, broker.Oldest, s.key[:0])
	if err == nil && ok {
		err = s.acceptItem(key)
	}
	if err != nil {
		return s.refuse(err)
	}
	if s.key = key; !ok {
		key = append(s.key[:0], none...)
	}
	s.plus(key)
	return nil
}

func (s *session) score(tx *broker.Tx) error {
	if s.words.n != 2 {
		s.unknown()
		return nil
	}
	item, ok := parseNumber(s.words.at[1])
	if !ok || item == 0 {
		s.peer.Out = append(s.peer.Out, "-ERROR INVALID ITEM ID\r\n"...)
		return nil
	}
	s.key = AppendKey(s.key[:0], item)
	priority, ok, err := tx.PriorityOf(s.queue, s.key)
	if err != nil {
		return s.refuse(err)
	}
	if !ok || priority == 0 {
		s.key = append(s.key[:0], none...)
	} else {
		s.key = AppendKey(s.key[:0], Score(priority))
	}
	s.plus(s.key)
	return nil
}

func (s *session) info(tx *broker.Tx) error {
	if s.words.n != 1 {
		s.unknown()
		return nil
	}
	c, err := tx.QueueCounts(s.queue)
	if err != nil {
		return s.refuse(err)
	}
	s.stat("uptime:", s.uptime())
	s.peer.Out = append(append(append(s.peer.Out, "version:"...), s.protocol.Version...), "\r\n"...)
	s.stat("updates:", s.updates())
	s.stat("items:", uint64(c.Selectable))
	s.stat("pools:", uint64(c.Priorities))
	return nil
}

// none is the answer in place of an item or score that does not exist.
const none = "-1"

// add carries out an update. If ok is false the refusal is answered, or err is for command to
// return.
func (s *session) add(tx *broker.Tx, item, score uint32) (ok bool, err error) {
	s.key, s.delta = AppendKey(s.key[:0], item), score
	err = tx.UpdatePriority(broker.UpdatePriorityRequest{Queue: s.queue, Key: s.key, To: s.to})
	if err != nil {
		return false, s.refuse(err)
	}
	s.protocol.updates.Add(1)
	return true, nil
}

// raise is the priority that the present update gives its item. A packet that another protocol
// pushed with priority 0 is not on the board; it gets the update's score.
func (s *session) raise(old uint32, known bool) uint32 {
	if !known || old == 0 {
		return Priority(s.delta)
	}
	return Priority(add(Score(old), s.delta))
}

// take carries out a next and returns what to answer. If ok is false the refusal is answered, or
// err is for command to return.
func (s *session) take(tx *broker.Tx) (item []byte, ok bool, err error) {
	key, found, err := tx.PopKey(s.queue, broker.Oldest, s.accept, s.key[:0])
	if err != nil {
		return nil, false, s.refuse(err)
	}
	if s.key = key; !found {
		s.key = append(s.key[:0], none...)
	}
	return s.key, true, nil
}

// errNoItem is why the best packet of the board cannot be taken here.
var errNoItem = errors.New("its key is not an item number; take it through another protocol")

func (s *session) acceptItem(key []byte) error {
	if _, ok := ParseKey(key); !ok {
		return errNoItem
	}
	return nil
}

// refuse answers that a command could not be carried out. It returns the error where there is no
// answer: the broker has closed.
func (s *session) refuse(err error) error {
	if errors.Is(err, broker.ErrClosed) {
		return err
	}
	switch {
	case errors.Is(err, errNoItem), errors.Is(err, broker.ErrNoKey):
		err = fmt.Errorf("queue %.80q holds a packet that is not an item: %w", s.queue, err)
	case errors.Is(err, broker.ErrShared):
		err = fmt.Errorf("queue %.80q has several packets of this number, so it has no one score: take them with next, or through another protocol", s.queue)
	}
	s.serverError(err)
	return nil
}

// Replies that several commands share.

func (s *session) unknown() {
	if s.v2 {
		s.peer.Out = append(s.peer.Out, "-ERROR\r\n"...)
		return
	}
	s.peer.Out = append(s.peer.Out, "ERROR\r\n"...)
}

func (s *session) clientError(format string, args ...any) {
	s.failure("CLIENT_ERROR ", fmt.Sprintf(format, args...))
}

func (s *session) serverError(err error) { s.failure("SERVER_ERROR ", err.Error()) }

func (s *session) failure(class, why string) {
	if s.v2 {
		class = "-ERROR "
	}
	s.peer.Out = append(append(append(s.peer.Out, class...), why...), "\r\n"...)
}

func (s *session) plus(value []byte) {
	s.peer.Out = append(append(append(s.peer.Out, '+'), value...), "\r\n"...)
}

func (s *session) stat(name string, value uint64) {
	s.peer.Out = strconv.AppendUint(append(s.peer.Out, name...), value, 10)
	s.peer.Out = append(s.peer.Out, "\r\n"...)
}

// uptime and updates are 32-bit numbers that wrap around to 0 (barbershop document, section
// statistics).

func (s *session) uptime() uint64 {
	return uint64(uint32(s.protocol.now().Sub(s.protocol.Since).Seconds()))
}

func (s *session) updates() uint64 { return uint64(uint32(s.protocol.updates.Load())) }
