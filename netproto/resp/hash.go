package resp

import (
	"cmp"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

func hashCommands() []command {
	return []command{
		{name: "hset", flags: flagWrite | flagAdds | flagFast, elements: 2, per: 2, run: setFields(false)},
		{name: "hmset", flags: flagWrite | flagAdds | flagFast, elements: 2, per: 2, run: setFields(true)},
		{name: "hsetnx", flags: flagWrite | flagAdds | flagFast, run: hsetnx},
		{name: "hget", flags: flagRead | flagFast, run: hget},
		{name: "hmget", flags: flagRead | flagFast, run: hmget},
		{name: "hgetall", flags: flagRead, run: hgetall},
		{name: "hkeys", flags: flagRead, run: hkeys},
		{name: "hvals", flags: flagRead, run: hvals},
		{name: "hdel", flags: flagWrite | flagFast, elements: 2, per: 1, run: hdel},
		{name: "hexists", flags: flagRead | flagFast, run: hexists},
		{name: "hlen", flags: flagRead | flagFast, run: hlen},
		{name: "hstrlen", flags: flagRead | flagFast, run: hstrlen},
		{name: "hincrby", flags: flagWrite | flagAdds | flagFast, right: access.Push | access.Look, run: hincrby},
		{name: "hincrbyfloat", flags: flagWrite | flagCostly | flagAdds | flagFast, right: access.Push | access.Look, run: hincrbyfloat},
		{name: "hscan", flags: flagRead, run: hscan},
	}
}

// setFields is HSET, which replies with the number of fields that are new, and HMSET.
func setFields(repliesOK bool) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		if len(args)%2 == 1 {
			return failure(wrongArity(s.cmd.name))
		}
		for i := 2; i < len(args); i += 2 { // all, or none if one is refused
			_, there, _ := tx.Field(args[1], args[i]) // CanSetField has the error
			s.mayChange(args[1], there)
			if err := tx.CanSetField(args[1], args[i], len(args[i+1])); err != nil {
				return err
			}
		}
		added := int64(0)
		for i := 2; i < len(args); i += 2 {
			isNew, err := tx.SetField(args[1], args[i], args[i+1])
			if err != nil {
				return err
			}
			if isNew {
				added++
			}
		}
		if repliesOK {
			return s.ok()
		}
		return s.int(added)
	}
}

func hsetnx(s *session, tx *broker.Tx, args [][]byte) error {
	_, there, err := tx.Field(args[1], args[2])
	if err == nil && !there {
		_, err = tx.SetField(args[1], args[2], args[3])
	}
	return s.did(!there, err)
}

func hget(s *session, tx *broker.Tx, args [][]byte) error {
	return s.found(tx.Field(args[1], args[2]))
}

func hmget(s *session, tx *broker.Tx, args [][]byte) error {
	if _, err := tx.HashLen(args[1]); err != nil {
		return err
	}
	if !s.look.under {
		s.array(len(args) - 2)
	}
	return s.eachName(args[2:], func(field []byte) error {
		v, ok, _ := tx.Field(args[1], field) // what is no hash any more is null
		return s.value(tx, v, ok)
	})
}

func hgetall(s *session, tx *broker.Tx, args [][]byte) error {
	kind, perField := byte('%'), int64(1)
	if !s.resp3 {
		kind, perField = '*', 2
	}
	return s.allFields(tx, args[1], kind, perField, func(name []byte, v broker.Value) error {
		s.bulk(name)
		return s.value(tx, v, true)
	})
}

func hkeys(s *session, tx *broker.Tx, args [][]byte) error {
	return s.allFields(tx, args[1], '*', 1, func(name []byte, _ broker.Value) error {
		return s.bulk(name)
	})
}

func hvals(s *session, tx *broker.Tx, args [][]byte) error {
	return s.allFields(tx, args[1], '*', 1, func(_ []byte, v broker.Value) error { return s.value(tx, v, true) })
}

// allFields replies with what each replies for each field of a hash, behind a head of some kind
// that counts a field as so many.
func (s *session) allFields(tx *broker.Tx, name []byte, kind byte, perField int64, each func(name []byte, v broker.Value) error) error {
	l := &s.look
	err := s.inSlices(func() (more bool, err error) {
		var unread error
		take := func(name []byte, v broker.Value) {
			l.found++
			unread = each(name, v)
		}
		for n := 0; n == 0 || more && err == nil && unread == nil && !s.sliceFull(n); n++ {
			more, err = tx.NextField(name, &l.fields, take)
		}
		return more, cmp.Or(err, unread)
	})
	l.head = wire.AppendHead(nil, kind, int64(l.found)*perField)
	return err
}

func hdel(s *session, tx *broker.Tx, args [][]byte) error {
	return s.tally(args[2:], func(field []byte) (bool, error) { return tx.DeleteField(args[1], field) })
}

func hexists(s *session, tx *broker.Tx, args [][]byte) error {
	_, ok, err := tx.Field(args[1], args[2])
	return s.did(ok, err)
}

func hlen(s *session, tx *broker.Tx, args [][]byte) error { return s.count(tx.HashLen(args[1])) }

func hstrlen(s *session, tx *broker.Tx, args [][]byte) error {
	v, _, err := tx.Field(args[1], args[2])
	return s.count(v.Size, err)
}

func hincrby(s *session, tx *broker.Tx, args [][]byte) error {
	n := intArg(args[3])
	old, err := s.number(tx.Field(args[1], args[2]))
	if err != nil {
		return err
	}
	sum := addIntArg(old, "ERR hash value is not an integer", n)
	var text [wire.MaxIntText]byte
	if _, err := tx.SetField(args[1], args[2], appendInt(text[:0], sum)); err != nil {
		return err
	}
	return s.int(sum)
}

func hincrbyfloat(s *session, tx *broker.Tx, args [][]byte) error {
	increment := floatArg(args[3], errNotFloat)
	old, err := s.number(tx.Field(args[1], args[2]))
	if err != nil {
		return err
	}
	sum := s.addFloatArg(old, "ERR hash value is not a float", increment)
	if _, err := tx.SetField(args[1], args[2], sum); err != nil {
		return err
	}
	return s.bulk(sum)
}
