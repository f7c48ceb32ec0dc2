package barbershop

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

// command describes what a line asks for.
type command struct {
	words int          // with its name
	needs access.Right // for the board
	// usage is what the first dialect, the document's, expects. The second has none: there every line
	// that is wrong gets the same answer.
	usage string
	run   func(s *session, tx *broker.Tx) error
}

var commands = map[string]*command{
	"update": {3, access.Push, "update <item> <score>", (*session).update},
	"next":   {1, access.Take, "next alone", (*session).next},
	"stats":  {1, access.Look, "stats alone", (*session).stats},

	"UPDATE": {3, access.Push, "", (*session).update},
	"NEXT":   {1, access.Take, "", (*session).next},
	"PEEK":   {1, access.Look, "", (*session).peek},
	"SCORE":  {2, access.Look, "", (*session).score},
	"INFO":   {1, access.Look, "", (*session).info},
}

// command carries out the line in s.words and appends its reply, or returns an error of the broker.
func (s *session) command() error {
	c := commands[string(s.words.at[0])]
	switch {
	case s.words.n == 0 || c == nil || s.words.n != c.words && s.v2:
		s.unknown()
		return nil
	case s.words.n != c.words:
		s.clientError("wrong number of words: expected %s", c.usage)
		return nil
	}
	if err := s.pass.Refuses(c.needs, s.queue); err != nil {
		s.clientError("%v", err)
		return nil
	}
	return c.run(s, s.tx)
}

// number reads a word as a number, which in the second dialect is not 0. If it is none it replies
// so.
func (s *session) number(word int, v1, v2 string) (n uint32, ok bool) {
	n, ok = parseNumber(s.words.at[word])
	if ok = ok && (n > 0 || !s.v2); !ok {
		if s.v2 {
			s.reply("-ERROR INVALID ", v2)
		} else {
			s.clientError("%s is not a number: expected digits, at most 4294967295", v1)
		}
	}
	return n, ok
}

func (s *session) update(tx *broker.Tx) error {
	item, ok := s.number(1, "item", "ITEM ID")
	if !ok {
		return nil
	}
	if s.delta, ok = s.number(2, "score", "SCORE"); !ok {
		return nil
	}
	s.key = AppendKey(s.key[:0], item)
	err := tx.UpdatePriority(broker.UpdatePriorityRequest{Queue: s.queue, Key: s.key, To: s.to})
	if err == nil {
		s.protocol.updates.Add(1)
		s.reply(s.plus(), "OK")
	}
	return err
}

func (s *session) next(tx *broker.Tx) error {
	key, ok, err := tx.PopKey(s.queue, broker.Oldest, s.accept, s.key[:0])
	if err == nil {
		s.found(key, ok)
	}
	return err
}

func (s *session) stats(tx *broker.Tx) error {
	c, err := tx.QueueCounts(s.queue)
	if err != nil {
		return err
	}
	items, pools := uint64(c.Selectable), uint64(c.Priorities)
	s.stat("STAT uptime ", s.uptime())
	s.reply("STAT version ", s.protocol.Version)
	s.stat("STAT updates ", s.updates())
	s.stat("STAT items ", items)
	s.stat("STAT items_gc ", items) // nothing waits to be collected here
	s.stat("STAT pools ", pools)
	s.stat("STAT pools_gc ", pools)
	s.reply("END", "")
	return nil
}

func (s *session) peek(tx *broker.Tx) error {
	key, ok, err := tx.PeekKey(s.queue, broker.Oldest, s.key[:0])
	if err == nil && ok {
		err = s.acceptItem(key)
	}
	if err == nil {
		s.found(key, ok)
	}
	return err
}

func (s *session) score(tx *broker.Tx) error {
	item, ok := s.number(1, "", "ITEM ID")
	if !ok {
		return nil
	}
	s.key = AppendKey(s.key[:0], item)
	priority, ok, err := tx.PriorityOf(s.queue, s.key)
	if err == nil {
		s.found(AppendKey(s.key[:0], Score(priority)), ok && priority > 0)
	}
	return err
}

func (s *session) info(tx *broker.Tx) error {
	c, err := tx.QueueCounts(s.queue)
	if err != nil {
		return err
	}
	s.stat("uptime:", s.uptime())
	s.reply("version:", s.protocol.Version)
	s.stat("updates:", s.updates())
	s.stat("items:", uint64(c.Selectable))
	s.stat("pools:", uint64(c.Priorities))
	return nil
}

// raise is the priority that the present update gives its item. A packet that another protocol
// pushed with priority 0 is not on the board; it gets the update's score.
func (s *session) raise(old uint32, known bool) uint32 {
	if !known || old == 0 {
		return Priority(s.delta)
	}
	return Priority(add(Score(old), s.delta))
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
	s.failure("SERVER_ERROR ", err.Error())
	return nil
}

// Replies that several commands share.

func (s *session) reply(class, text string) {
	s.peer.Out = append(append(append(s.peer.Out, class...), text...), "\r\n"...)
}

// plus returns what begins a reply in the second dialect.
func (s *session) plus() string {
	if s.v2 {
		return "+"
	}
	return ""
}

// found replies with an item or a score, and keeps its bytes for the next one.
func (s *session) found(key []byte, ok bool) {
	if s.key = key; !ok {
		s.key = append(s.key[:0], "-1"...)
	}
	s.reply(s.plus(), string(s.key))
}

func (s *session) unknown() {
	if s.v2 {
		s.reply("-ERROR", "")
	} else {
		s.reply("ERROR", "")
	}
}

func (s *session) clientError(format string, args ...any) {
	s.failure("CLIENT_ERROR ", fmt.Sprintf(format, args...))
}

func (s *session) failure(class, why string) {
	if s.v2 {
		class = "-ERROR "
	}
	s.reply(class, why)
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
