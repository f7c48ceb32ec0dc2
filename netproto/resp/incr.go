package resp

import (
	"math"

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

// number returns the text of a number that a call has found, 0 if it has found nothing.
func (s *session) number(v broker.Value, ok bool, err error) (text []byte, _ error) {
	if err != nil || !ok {
		return []byte{'0'}, err
	}
	return s.tx.Bytes(v)
}

// incr adds n to the number that a string is and replies with the sum.
func (s *session) incr(tx *broker.Tx, name []byte, n int64) error {
	old, err := s.number(tx.String(name))
	if err != nil {
		return err
	}
	sum, err := addIntArg(old, errNotInteger, n)
	if err != nil {
		return err
	}
	expiry, _ := tx.Expiry(name)
	var text [maxIntText]byte
	if err := tx.SetString(name, appendInt(text[:0], sum), expiry); err != nil {
		return err
	}
	return s.int(sum)
}

// addIntArg returns the sum of two numbers; refusal is the error if old is no number.
func addIntArg(old []byte, refusal failure, n int64) (int64, error) {
	a, ok := parseInt(old)
	if !ok {
		return 0, refusal
	}
	sum, ok := addInt(a, n)
	if !ok {
		return 0, failure("ERR increment or decrement would overflow")
	}
	return sum, nil
}

func incrbyfloat(s *session, tx *broker.Tx, args [][]byte) error {
	old, err := s.number(tx.String(args[1]))
	if err != nil {
		return err
	}
	sum, err := addFloatArg(old, errNotFloat, args[2])
	if err != nil {
		return err
	}
	expiry, _ := tx.Expiry(args[1])
	if err := tx.SetString(args[1], sum, expiry); err != nil {
		return err
	}
	return s.bulk(sum)
}

// addFloatArg returns the sum of two numbers as a text; refusal is the error if old is no number.
func addFloatArg(old []byte, refusal failure, increment []byte) (text []byte, err error) {
	a, ok := parseFloat(old)
	if !ok {
		return nil, refusal
	}
	b, ok := parseFloat(increment)
	if !ok {
		return nil, failure(errNotFloat)
	}
	sum, ok := addFloat(a, b)
	if !ok {
		return nil, failure("ERR increment would produce NaN or Infinity")
	}
	return appendFloat(nil, sum), nil
}
