package resp

import (
	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

func keyCommands() []command {
	return []command{
		{name: "del", flags: flagWrite, right: access.Manage, run: del},
		{name: "unlink", flags: flagWrite | flagFast, right: access.Manage, run: del},
		{name: "exists", flags: flagRead | flagFast, run: exists},
		{name: "touch", flags: flagRead | flagFast, run: exists},
		{name: "type", flags: flagRead | flagFast, run: typeOf},
		{name: "keys", flags: flagRead, asks: asksPatterns, run: keys},
		{name: "scan", flags: flagRead, asks: asksMatch(2), run: scan},
		{name: "rename", flags: flagWrite | flagCostly, right: access.Manage, run: rename},
		{name: "renamenx", flags: flagWrite | flagCostly | flagFast, right: access.Manage, run: renamenx},
		{name: "expire", flags: flagWrite | flagFast, right: access.Manage, run: expire(second, false)},
		{name: "pexpire", flags: flagWrite | flagFast, right: access.Manage, run: expire(millisecond, false)},
		{name: "expireat", flags: flagWrite | flagFast, right: access.Manage, run: expire(second, true)},
		{name: "pexpireat", flags: flagWrite | flagFast, right: access.Manage, run: expire(millisecond, true)},
		{name: "persist", flags: flagWrite | flagFast, right: access.Manage, run: persist},
		{name: "ttl", flags: flagRead | flagFast, run: ttl(second, false)},
		{name: "pttl", flags: flagRead | flagFast, run: ttl(millisecond, false)},
		{name: "expiretime", flags: flagRead | flagFast, run: ttl(second, true)},
		{name: "pexpiretime", flags: flagRead | flagFast, run: ttl(millisecond, true)},
		{name: "memory", arity: -2, flags: flagRead, subs: []command{
			{name: "memory|usage", flags: flagRead, run: memoryUsage},
		}},
		{name: "object", flags: flagRead, run: object},
		{name: "flushdb", flags: flagWrite | flagCostly, right: access.Operate, run: flush(false)},
		{name: "flushall", flags: flagWrite | flagCostly, right: access.Operate, run: flush(true)},
	}
}

// tally replies with how many of some names a call has done something with.
func (s *session) tally(names [][]byte, call func(name []byte) (bool, error)) error {
	err := s.eachName(names, func(name []byte) error {
		done, err := call(name)
		if done {
			s.look.found++
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.int(int64(s.look.found))
}

func del(s *session, tx *broker.Tx, args [][]byte) error { return s.tally(args[1:], tx.Delete) }

func exists(s *session, tx *broker.Tx, args [][]byte) error {
	return s.tally(args[1:], func(name []byte) (bool, error) { return isThere(tx, name), nil })
}

func typeOf(s *session, tx *broker.Tx, args [][]byte) error {
	return s.simple(tx.Type(args[1]).String())
}

func rename(s *session, tx *broker.Tx, args [][]byte) error {
	ok, err := tx.Rename(args[1], args[2])
	if err == nil && !ok {
		err = failure(errNoKey)
	}
	return s.done(err)
}

func renamenx(s *session, tx *broker.Tx, args [][]byte) error {
	switch {
	case !isThere(tx, args[1]):
		return failure(errNoKey)
	case isThere(tx, args[2]):
		return s.int(0)
	}
	return s.did(tx.Rename(args[1], args[2]))
}

// expire is EXPIRE and its kin. The time is in the unit, which is in milliseconds, from now or
// absolute.
func expire(unit int64, absolute bool) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		var o expireOptions
		o.parse(args[3:])
		n := intArg(args[2])
		at := s.momentOf(n, unit, absolute)
		old, ok := tx.Expiry(args[1])
		if !ok || !o.allow(old, at) {
			return s.int(0)
		}
		s.forItself = tx.Type(args[1]) != broker.TypeList
		_, err := tx.SetExpiry(args[1], max(at, 1)) // 0 would be never
		return s.did(true, err)
	}
}

// expireOptions say which expiry a new one may replace.
type expireOptions struct{ ifNone, ifSome, ifLater, ifSooner bool }

func (o *expireOptions) parse(args [][]byte) {
	for _, arg := range args {
		switch {
		case is(arg, "nx"):
			o.ifNone = true
		case is(arg, "xx"):
			o.ifSome = true
		case is(arg, "gt"):
			o.ifLater = true
		case is(arg, "lt"):
			o.ifSooner = true
		default:
			refuse("ERR Unsupported option %s", arg)
		}
	}
	switch {
	case o.ifNone && (o.ifSome || o.ifLater || o.ifSooner):
		refuse("ERR NX and XX, GT or LT options at the same time are not compatible")
	case o.ifLater && o.ifSooner:
		refuse("ERR GT and LT options at the same time are not compatible")
	}
}

// allow says whether a new expiry may replace the old one, which is 0 for never.
func (o *expireOptions) allow(old, at int64) bool {
	switch {
	case o.ifNone && old != 0, o.ifSome && old == 0:
		return false
	case o.ifLater && (old == 0 || at <= old), o.ifSooner && old != 0 && at >= old:
		return false
	}
	return true
}

func persist(s *session, tx *broker.Tx, args [][]byte) error {
	at, ok := tx.Expiry(args[1])
	if !ok || at == 0 {
		return s.int(0)
	}
	s.forItself = tx.Type(args[1]) != broker.TypeList
	_, err := tx.SetExpiry(args[1], 0)
	return s.did(true, err)
}

// ttl is TTL and its kin. It replies in the unit, which is in milliseconds, from now or absolute.
func ttl(unit int64, absolute bool) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		at, ok := tx.Expiry(args[1])
		switch {
		case !ok:
			return s.int(-2)
		case at == 0:
			return s.int(-1)
		}
		if !absolute {
			at = max(at-tx.Now(), 0)
		}
		if unit == second {
			at = (at + 500) / second // rounded, as in Redis
		}
		return s.int(at)
	}
}

// flush is FLUSHDB, or FLUSHALL.
func flush(all bool) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error {
		if len(args) > 2 || len(args) == 2 && !is(args[1], "async") && !is(args[1], "sync") {
			return failure(errSyntax)
		}
		return s.done(tx.Flush(all))
	}
}
