package resp

import (
	"bytes"
	"math"
	"math/rand/v2"

	"github.com/holdfast-queue/holdfast/broker"
)

func hashCommands() []command {
	return []command{
		{name: "hset", arity: -4, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: hset},
		{name: "hmset", arity: -4, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: hmset},
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
		{name: "hincrby", arity: 4, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: hincrby},
		{name: "hincrbyfloat", arity: 4, flags: flagWrite | flagAdds | flagFast, first: 1, last: 1, step: 1, run: hincrbyfloat},
		{name: "hscan", arity: -3, flags: flagRead, first: 1, last: 1, step: 1, run: hscan},
		{name: "hrandfield", arity: -2, flags: flagRead, first: 1, last: 1, step: 1, run: hrandfield},
	}
}

// field is one field of a hash.
type field struct {
	name  []byte
	value broker.Value
}

// fields returns all fields of a hash.
func fields(tx *broker.Tx, name []byte) (all []field, err error) {
	err = tx.Fields(name, func(f []byte, v broker.Value) bool {
		all = append(all, field{bytes.Clone(f), v})
		return true
	})
	return all, err
}

// hset replies with the number of fields that are new.
func hset(s *session, tx *broker.Tx, args [][]byte) error {
	added, err := setFields(s, tx, args)
	if err == nil {
		s.int(added)
	}
	return err
}

func hmset(s *session, tx *broker.Tx, args [][]byte) error {
	_, err := setFields(s, tx, args)
	if err == nil {
		s.ok()
	}
	return err
}

func setFields(s *session, tx *broker.Tx, args [][]byte) (added int64, err error) {
	if len(args)%2 == 1 {
		return 0, failure(wrongArity(s.cmd.name))
	}
	for i := 2; i < len(args); i += 2 { // all, or none if one is refused
		if err := tx.CanSetField(args[1], args[i], len(args[i+1])); err != nil {
			return 0, err
		}
	}
	for i := 2; i < len(args); i += 2 {
		isNew, err := tx.SetField(args[1], args[i], args[i+1])
		if err != nil {
			return 0, err
		}
		if isNew {
			added++
		}
	}
	return added, nil
}

func hsetnx(s *session, tx *broker.Tx, args [][]byte) error {
	_, there, err := tx.Field(args[1], args[2])
	if err == nil && !there {
		_, err = tx.SetField(args[1], args[2], args[3])
	}
	if err == nil {
		s.bool(!there)
	}
	return err
}

func hget(s *session, tx *broker.Tx, args [][]byte) error {
	v, ok, err := tx.Field(args[1], args[2])
	if err == nil {
		err = s.value(tx, v, ok)
	}
	return err
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
	n, err := tx.HashLen(args[1])
	if err != nil {
		return err
	}
	s.mapHeader(n)
	_ = tx.Fields(args[1], func(name []byte, v broker.Value) bool { // it is a hash
		s.bulk(name)
		err = s.value(tx, v, true)
		return err == nil && !s.overLimit
	})
	return err
}

func hkeys(s *session, tx *broker.Tx, args [][]byte) error {
	n, err := tx.HashLen(args[1])
	if err != nil {
		return err
	}
	s.array(n)
	return tx.Fields(args[1], func(name []byte, _ broker.Value) bool {
		s.bulk(name)
		return !s.overLimit
	})
}

func hvals(s *session, tx *broker.Tx, args [][]byte) error {
	n, err := tx.HashLen(args[1])
	if err != nil {
		return err
	}
	s.array(n)
	_ = tx.Fields(args[1], func(_ []byte, v broker.Value) bool { // it is a hash
		err = s.value(tx, v, true)
		return err == nil && !s.overLimit
	})
	return err
}

func hdel(s *session, tx *broker.Tx, args [][]byte) error {
	deleted := int64(0)
	for _, name := range args[2:] {
		existed, err := tx.DeleteField(args[1], name)
		if err != nil {
			return err
		}
		if existed {
			deleted++
		}
	}
	s.int(deleted)
	return nil
}

func hexists(s *session, tx *broker.Tx, args [][]byte) error {
	_, ok, err := tx.Field(args[1], args[2])
	if err == nil {
		s.bool(ok)
	}
	return err
}

func hlen(s *session, tx *broker.Tx, args [][]byte) error {
	n, err := tx.HashLen(args[1])
	if err == nil {
		s.int(int64(n))
	}
	return err
}

func hstrlen(s *session, tx *broker.Tx, args [][]byte) error {
	v, _, err := tx.Field(args[1], args[2])
	if err == nil {
		s.int(int64(v.Size))
	}
	return err
}

func hincrby(s *session, tx *broker.Tx, args [][]byte) error {
	n, err := intArg(args[3])
	if err != nil {
		return err
	}
	old, err := s.number(tx.Field(args[1], args[2]))
	if err != nil {
		return err
	}
	sum, err := addIntArg(old, "ERR hash value is not an integer", n)
	if err != nil {
		return err
	}
	var text [maxIntText]byte
	if _, err := tx.SetField(args[1], args[2], appendInt(text[:0], sum)); err != nil {
		return err
	}
	return s.int(sum)
}

func hincrbyfloat(s *session, tx *broker.Tx, args [][]byte) error {
	switch n, ok := parseFloat(args[3]); {
	case !ok:
		return failure(errNotFloat)
	case n.IsInf():
		return failure("ERR value is NaN or Infinity")
	}
	old, err := s.number(tx.Field(args[1], args[2]))
	if err != nil {
		return err
	}
	sum, err := addFloatArg(old, "ERR hash value is not a float", args[3])
	if err != nil {
		return err
	}
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
		s.bulk(name)
		return nil
	}
	count, err := intArg(args[2])
	if err != nil {
		return err
	}
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
	list, err := randomFields(tx, args[1], count)
	if err == nil {
		err = s.fields(tx, list, values)
	}
	return err
}

// randomFields returns count different fields, fewer if there are not so many. With a negative
// count it returns -count fields, and one may come several times.
func randomFields(tx *broker.Tx, name []byte, count int64) (list []field, err error) {
	n, err := tx.HashLen(name)
	if err != nil || n == 0 {
		return nil, err
	}
	if count >= int64(n)/4 { // too many to draw them until all are different
		all, err := fields(tx, name)
		return choose(all, int(min(count, int64(n)))), err
	}
	seen := make(map[string]bool)
	for int64(len(list)) < max(count, -count) {
		f, v, _, err := tx.RandomField(name)
		if err != nil {
			return nil, err
		}
		if count > 0 && seen[string(f)] {
			continue
		}
		if count > 0 {
			seen[string(f)] = true
		}
		list = append(list, field{f, v})
	}
	return list, nil
}

// choose returns n of all fields. It reorders all.
func choose(all []field, n int) []field {
	for i := range n { // the start of a shuffle
		j := i + rand.IntN(len(all)-i)
		all[i], all[j] = all[j], all[i]
	}
	return all[:n]
}

// fields replies with names of fields, in RESP3 each in an array with its value if values are asked
// for.
func (s *session) fields(tx *broker.Tx, list []field, values bool) error {
	n := len(list)
	if values && !s.resp3 {
		n *= 2
	}
	s.array(n)
	for _, f := range list {
		if values && s.resp3 {
			s.array(2)
		}
		s.bulk(f.name)
		if !values {
			continue
		}
		if err := s.value(tx, f.value, true); err != nil {
			return err
		}
	}
	return nil
}
