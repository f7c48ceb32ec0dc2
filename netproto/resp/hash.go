package resp

import (
	"math"
	"math/rand/v2"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

func hashCommands() []command {
	return []command{
		{name: "hset", arity: -4, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: setFields(false)},
		{name: "hmset", arity: -4, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: setFields(true)},
		{name: "hsetnx", arity: 4, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: hsetnx},
		{name: "hget", arity: 3, flags: flagRead | flagFast, first: 1, last: 1, step: 1, run: hget},
		{name: "hmget", arity: -3, flags: flagRead | flagFast, first: 1, last: 1, step: 1, run: hmget},
		{name: "hgetall", arity: 2, flags: flagRead, first: 1, last: 1, step: 1, run: hgetall},
		{name: "hkeys", arity: 2, flags: flagRead, first: 1, last: 1, step: 1, run: hkeys},
		{name: "hvals", arity: 2, flags: flagRead, first: 1, last: 1, step: 1, run: hvals},
		{name: "hdel", arity: -3, flags: flagWrite | flagFast, first: 1, last: 1, step: 1, run: hdel},
		{name: "hexists", arity: 3, flags: flagRead | flagFast, first: 1, last: 1, step: 1, run: hexists},
		{name: "hlen", arity: 2, flags: flagRead | flagFast, first: 1, last: 1, step: 1, run: hlen},
		{name: "hstrlen", arity: 3, flags: flagRead | flagFast, first: 1, last: 1, step: 1, run: hstrlen},
		{name: "hincrby", arity: 4, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, right: access.Push | access.Look, run: hincrby},
		{name: "hincrbyfloat", arity: 4, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, right: access.Push | access.Look, run: hincrbyfloat},
		{name: "hscan", arity: -3, flags: flagRead, first: 1, last: 1, step: 1, run: hscan},
		{name: "hrandfield", arity: -2, flags: flagRead, first: 1, last: 1, step: 1, run: hrandfield},
	}
}

// setFields is HSET, which replies with the number of fields that are new, and HMSET.
func setFields(repliesOK bool) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		if len(args)%2 == 1 {
			return failure(wrongArity(s.cmd.name))
		}
		for i := 2; i < len(args); i += 2 { // all, or none if one is refused
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
	s.array(len(args) - 2)
	for _, name := range args[2:] {
		v, ok, _ := tx.Field(args[1], name) // it is a hash: it has a length
		if err := s.value(tx, v, ok); err != nil {
			return err
		}
	}
	return nil
}

func hgetall(s *session, tx *broker.Tx, args [][]byte) error {
	return s.allFields(tx, args[1], s.mapHeader, func(name []byte, v broker.Value) error {
		s.bulk(name)
		return s.value(tx, v, true)
	})
}

func hkeys(s *session, tx *broker.Tx, args [][]byte) error {
	return s.allFields(tx, args[1], s.array, func(name []byte, _ broker.Value) error {
		return s.bulk(name)
	})
}

func hvals(s *session, tx *broker.Tx, args [][]byte) error {
	return s.allFields(tx, args[1], s.array, func(_ []byte, v broker.Value) error { return s.value(tx, v, true) })
}

// allFields replies with a head, and with what each replies for each field of a hash.
func (s *session) allFields(tx *broker.Tx, name []byte, head func(n int) error, each func(name []byte, v broker.Value) error) error {
	return s.inSlices(tx, name, func(cursor uint64) (uint64, error) {
		n, err := tx.HashLen(name)
		if err != nil {
			return 0, err
		}
		if cursor == 0 {
			_ = head(n)
		}
		return s.sliceOfFields(tx, name, cursor, each)
	})
}

// sliceOfFields calls each for a slice of the fields of a hash.
func (s *session) sliceOfFields(tx *broker.Tx, name []byte, cursor uint64, each func(name []byte, v broker.Value) error) (next uint64, err error) {
	take := func(name []byte, v broker.Value) { err = each(name, v) }
	for n := 0; err == nil && !s.sliceFull(n); n++ {
		if cursor, _ = tx.ScanFields(name, cursor, 1, take); cursor == 0 { // it is a hash: it has a length
			return 0, err
		}
	}
	return cursor, err
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
	var text [maxIntText]byte
	if _, err := tx.SetField(args[1], args[2], appendInt(text[:0], sum)); err != nil {
		return err
	}
	return s.int(sum)
}

func hincrbyfloat(s *session, tx *broker.Tx, args [][]byte) error {
	if floatArg(args[3], errNotFloat).IsInf() {
		refuse("ERR value is NaN or Infinity")
	}
	old, err := s.number(tx.Field(args[1], args[2]))
	if err != nil {
		return err
	}
	sum := addFloatArg(old, "ERR hash value is not a float", args[3])
	if _, err := tx.SetField(args[1], args[2], sum); err != nil {
		return err
	}
	return s.bulk(sum)
}

func hrandfield(s *session, tx *broker.Tx, args [][]byte) error {
	if len(args) == 2 {
		name, _, ok, err := tx.RandomField(args[1])
		if !ok {
			s.null()
			return err
		}
		return s.bulk(name)
	}
	count := intArg(args[2])
	if count == math.MinInt64 {
		return failure("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
	}
	values := len(args) == 4 && is(args[3], "withvalues")
	switch {
	case len(args) > 3 && !values:
		return failure(errSyntax)
	case values && (count < -math.MaxInt64/2 || count > math.MaxInt64/2), -count > maxArgs:
		return failure("ERR value is out of range")
	}
	return s.randomFields(tx, args[1], count, values)
}

// randomFields replies with count different fields, fewer if there are not so many. With a negative
// count it replies with -count fields, and one may come several times.
func (s *session) randomFields(tx *broker.Tx, name []byte, count int64, values bool) error {
	each := func(name []byte, v broker.Value) error {
		if values && s.resp3 {
			s.array(2)
		}
		s.bulk(name)
		if !values {
			return nil
		}
		return s.value(tx, v, true)
	}
	return s.inSlices(tx, name, func(cursor uint64) (uint64, error) {
		n, err := tx.HashLen(name)
		if err != nil {
			return 0, err
		}
		want := int(max(-count, min(count, int64(n))))
		switch {
		case n == 0:
			want = 0
			s.array(0)
		case cursor > 0:
		case values && !s.resp3:
			s.array(2 * want)
		default:
			s.array(want)
		}
		if count > int64(n)/4 || count > broker.LookSlice { // too many to draw them until all are different
			return s.sliceOfFields(tx, name, cursor, func(name []byte, v broker.Value) error {
				l := &s.look
				if l.seen++; rand.IntN(n-l.seen+1) >= want-l.found {
					return nil
				}
				l.found++
				return each(name, v)
			})
		}
		return s.drawFields(tx, name, cursor, want, count > 0, each)
	})
}

// drawFields calls each for a slice of the fields that are drawn, all of them if they must be
// different.
func (s *session) drawFields(tx *broker.Tx, name []byte, from uint64, want int, different bool, each func(name []byte, v broker.Value) error) (next uint64, err error) {
	drawn := make(map[string]bool)
	for n := 0; int(from) < want; n++ {
		if !different && s.sliceFull(n) {
			return from, nil
		}
		f, v, _, err := tx.RandomField(name)
		if err == nil && !drawn[string(f)] {
			drawn[string(f)] = different
			from++
			err = each(f, v)
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, nil
}
