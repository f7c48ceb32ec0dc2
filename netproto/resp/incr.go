package resp

import (
	"math"
	"strconv"

	"github.com/holdfast-queue/holdfast/broker"
)

// maxIntText is how many bytes a whole number has at most.
const maxIntText = 20

func incrBy(n int64) handler {
	return func(s *session, tx *broker.Tx, args [][]byte) error { return s.incr(tx, args[1], n) }
}

func incrby(s *session, tx *broker.Tx, args [][]byte) error {
	n, err := intArg(args[2])
	if err != nil {
		return err
	}
	return s.incr(tx, args[1], n)
}

func decrby(s *session, tx *broker.Tx, args [][]byte) error {
	n, err := intArg(args[2])
	if err != nil {
		return err
	}
	if n == math.MinInt64 {
		return failure("ERR decrement would overflow")
	}
	return s.incr(tx, args[1], -n)
}

const errOverflow = "ERR increment or decrement would overflow"

// incr adds n to the number that a string is and replies with the sum.
func (s *session) incr(tx *broker.Tx, name []byte, n int64) error {
	v, ok, err := tx.String(name)
	if err != nil {
		return err
	}
	var old, expiry int64
	if ok {
		text, err := tx.Bytes(v)
		if err == nil {
			old, err = intArg(text)
		}
		if err != nil {
			return err
		}
		expiry, _ = tx.Expiry(name)
	}
	sum, ok := addInt(old, n)
	if !ok {
		return failure(errOverflow)
	}
	var text [maxIntText]byte
	if err := tx.SetString(name, strconv.AppendInt(text[:0], sum, 10), expiry); err != nil {
		return err
	}
	s.int(sum)
	return nil
}

const errNotFinite = "ERR increment would produce NaN or Infinity"

func incrbyfloat(s *session, tx *broker.Tx, args [][]byte) error {
	v, ok, err := tx.String(args[1])
	if err != nil {
		return err
	}
	old, expiry := []byte("0"), int64(0)
	if ok {
		if old, err = tx.Bytes(v); err != nil {
			return err
		}
		expiry, _ = tx.Expiry(args[1])
	}
	text, err := addFloatArg(old, failure(errNotFloat), args[2])
	if err != nil {
		return err
	}
	if err := tx.SetString(args[1], text, expiry); err != nil {
		return err
	}
	s.bulk(text)
	return nil
}

// addFloatArg returns the sum of two numbers as a text; refusal is the error if old is no number.
func addFloatArg(old []byte, refusal failure, increment []byte) (text []byte, err error) {
	a, ok := parseFloat(old)
	if !ok {
		return nil, refusal
	}
	b, err := floatArg(increment)
	if err != nil {
		return nil, err
	}
	sum, ok := addFloat(a, b)
	if !ok {
		return nil, failure(errNotFinite)
	}
	return appendFloat(nil, sum), nil
}
