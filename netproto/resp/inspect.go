package resp

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// defaultCount is how many packets QPEEK and QLIST show.
const defaultCount = 10

func qpeek(s *session, tx *broker.Tx, args [][]byte) error {
	count := int64(defaultCount)
	parseOptions(args[2:], option{&words.COUNT, &count})
	f, err := tx.Peek(args[1], int(count))
	return s.packets(formPackets, f, err)
}

// listPlace is where QLIST goes on: behind a place among the packets of one state.
type listPlace struct {
	state broker.State
	after broker.Place
}

// The forms of a cursor: shareCursor is of a packet of a queue that has or had shares.
const (
	listCursor  = "%d:%d:%d"
	shareCursor = listCursor + ":%d:%d"
)

// parseListPlace reads a cursor. 0, and no text, stand for the beginning, which is at a state.
func parseListPlace(cursor []byte, begin broker.State) (p listPlace) {
	if len(cursor) == 0 || string(cursor) == "0" {
		return listPlace{state: begin}
	}
	n, _ := fmt.Sscanf(string(cursor), shareCursor, &p.state, &p.after.Priority, &p.after.Seq, &p.after.Share, &p.after.Shape)
	if n < 3 || p.String() != string(cursor) || p.state < broker.Ready || p.state > broker.Damaged {
		refuse("ERR CURSOR: expected one that QLIST replied with, or 0, got %q", quoted(cursor))
	}
	return p
}

// String is the cursor.
func (p listPlace) String() string {
	if p.after.Share != 0 || p.after.Shape != 0 {
		return fmt.Sprintf(shareCursor, uint8(p.state), p.after.Priority, p.after.Seq, p.after.Share, p.after.Shape)
	}
	return fmt.Sprintf(listCursor, uint8(p.state), p.after.Priority, p.after.Seq)
}

func qlist(s *session, tx *broker.Tx, args [][]byte) error {
	count, state := int64(defaultCount), broker.State(0)
	var cursor []byte
	var f filter
	parseOptions(args[2:],
		option{&words.COUNT, &count},
		option{&words.CURSOR, &cursor},
		option{&words.STATE, &state},
		option{&words.SHARE, &f.share},
		option{&words.FILTER, &f},
		option{&words.MATCH, &f.match},
	)
	first, last := broker.Ready, broker.Damaged
	if state != 0 {
		first, last = state, state
	}
	at := parseListPlace(cursor, first)
	if at.state < first || at.state > last {
		refuse("ERR CURSOR: expected one of a QLIST of this STATE, got %q", cursor)
	}
	filter := f.broker()
	if err := s.useFilter(tx, filter, args[1]); err != nil {
		return err
	}
	from, n, next := len(s.peer.Out), 0, "0"
	for ; at.state <= last; at = (listPlace{state: at.state + 1}) {
		f, end, err := tx.List(args[1], broker.Page{State: at.state, After: at.after, Count: int(count) - n, Filter: filter})
		if errors.Is(err, broker.ErrReplyTooLarge) && n > 0 {
			next = at.String()
			break
		}
		if err := s.packets(formFields, f, err); err != nil {
			return err
		}
		if n += len(f.Packets); end.More {
			next = listPlace{at.state, end.Last}.String()
			break
		}
	}
	head := wire.AppendHead(wire.AppendBulk(wire.AppendHead(nil, '*', 2), next), '*', int64(n))
	s.peer.Out = slices.Insert(s.peer.Out, from, head...)
	return nil
}

func qshow(s *session, tx *broker.Tx, args [][]byte) error {
	id := idArg(args[2])
	f, err := tx.Show(args[1], id)
	return s.packets(formPacket, f, err)
}

func qlen(s *session, tx *broker.Tx, args [][]byte) error { return s.count(tx.Unfinished(args[1])) }

// holder is the client that alone has a role of a queue.
type holder struct {
	role   string
	client *string // nil: the queue gives no such role
}

func qstat(s *session, tx *broker.Tx, args [][]byte) error {
	q, ok, err := tx.QueueStats(args[1])
	switch {
	case err != nil:
		return err
	case !ok:
		return broker.ErrUnknownQueue
	}
	roles := []holder{{"producer", q.Producer}, {"consumer", q.Consumer}}
	roles = slices.DeleteFunc(roles, func(h holder) bool { return h.client == nil })
	keeps := 0
	if q.KeepsShape {
		keeps = 1
	}
	s.mapHeader(words.Figures + len(roles) + keeps + 3)
	for i, n := range netproto.Figures(&q.QueueFigures) {
		s.bulkString(words.QueueFigures[i].Name)
		s.int(n)
	}
	for _, h := range roles {
		s.bulkString(h.role)
		s.named(*h.client)
	}
	if q.KeepsShape {
		s.bulkString("keeps-shape")
		s.int(1)
	}
	s.bulkString("taken")
	s.int(q.Taken)
	s.bulkString("priorities")
	s.array(len(q.Bands))
	for _, b := range q.Bands {
		m := s.newMap()
		appendNumber(m, "from", int64(b.From), true)
		appendNumber(m, "to", int64(b.To), true)
		appendNumber(m, "packets", int64(b.Packets), true)
		s.endMap(m, 0)
	}
	s.bulkString("age")
	f, err := tx.Oldest(args[1])
	switch {
	case err != nil:
		return err
	case len(f.Packets) == 0 || f.Details[0].State == broker.Damaged:
		return s.null()
	}
	return s.int(max(0, tx.Now()-f.Packets[0].EnqueuedAt))
}

func qconsumers(s *session, tx *broker.Tx, args [][]byte) error {
	return s.inSlices(func() (bool, error) {
		consumers, more, err := tx.Consumers(args[1], &s.look.consumers)
		if err == nil && !more {
			s.consumers(consumers)
		}
		return more, err
	})
}

func (s *session) consumers(all []broker.Consumer) {
	s.array(len(all))
	for _, w := range all {
		m := s.newMap()
		appendText(m, "name", w.Name, true)
		appendNumber(m, "seen", w.Seen, w.Seen != 0)
		appendNumber(m, "claimed", int64(w.Claimed), true)
		appendNumber(m, "since", w.Since, w.Since != 0)
		s.endMap(m, 2)
		s.bulkString("ids")
		s.array(len(w.IDs))
		for _, id := range w.IDs {
			s.packetID(id)
		}
		s.bulkString("waiting")
		s.array(len(w.Waiting))
		for _, wait := range w.Waiting {
			s.waiting(wait)
		}
	}
}

// sharesCount is how many shares QSHARES shows.
const sharesCount = 100

func qshares(s *session, tx *broker.Tx, args [][]byte) error {
	l := &s.look.shares
	if !s.look.under {
		after, count := int64(0), int64(0)
		parseOptions(args[2:], option{&words.AFTER, &after}, option{&words.COUNT, &count})
		*l = broker.ShareLook{After: after, Count: int(cmp.Or(count, sharesCount))}
	}
	return s.inSlices(func() (bool, error) {
		more, err := tx.Shares(args[1], l)
		if err == nil && !more {
			s.array(2)
			s.bulkString(strconv.FormatInt(l.After, 10))
			s.shares(tx, l.Rows)
		}
		return more, err
	})
}

func (s *session) shares(tx *broker.Tx, rows []broker.ShareRow) {
	s.array(len(rows))
	for _, r := range rows {
		m, rests := s.newMap(), r.HeldUntil-tx.Steady()
		appendText(m, "name", r.Name, true)
		appendText(m, "rate", r.Rate, len(r.Rate) > 0)
		appendText(m, "why", r.Why, r.Why != "")
		appendNumber(m, "ready", int64(r.Ready), true)
		appendNumber(m, "claimed", int64(r.Claimed), true)
		appendNumber(m, "age", max(0, tx.Now()-r.Since), r.Since != 0)
		appendNumber(m, "weight", int64(r.Weight), true)
		appendNumber(m, "max-claimed", int64(r.MaxClaimed), r.MaxClaimed > 0)
		appendNumber(m, "rests", rests, rests > 0)
		appendNumber(m, "until", r.Until, r.Until > 0)
		s.endMap(m, 0)
	}
}

func qproducers(s *session, tx *broker.Tx, args [][]byte) error {
	all, err := tx.Producers(args[1])
	if err != nil {
		return err
	}
	sessions := make(map[uint64]*session, len(s.protocol.sessions))
	for _, t := range s.protocol.sessions {
		sessions[t.consumer.Number()] = t
	}
	s.array(len(all))
	for _, w := range all {
		m, t := s.newMap(), sessions[w.Conn]
		appendText(m, "name", w.Name, true)
		appendNumber(m, "seen", w.Seen, true)
		appendNumber(m, "pushed", int64(w.Pushed), true)
		if t != nil {
			appendNumber(m, "connection", t.id, true)
			appendText(m, "user", t.userName(), true)
		}
		s.endMap(m, 0)
	}
	return nil
}

// waiting replies with what somebody waits for.
func (s *session) waiting(w broker.Wait) {
	filter := filterWords(w.Filter)
	s.mapHeader(2)
	s.bulkString("queues")
	s.array(len(w.Queues))
	s.bulkString(w.Queues...)
	s.bulkString("filter")
	s.array(len(filter))
	s.bulkString(filter...)
}

func queues(s *session, tx *broker.Tx, args [][]byte) error {
	pattern := []byte("*")
	parseOptions(args[1:], option{&words.QUEUESMATCH, &pattern})
	return s.names(tx, pattern, broker.TypeList)
}
