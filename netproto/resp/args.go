package resp

import (
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/glob"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

const (
	// maxSteps is how many atoms of patterns a request tries, a transaction too, beyond one pass over
	// each name: some 20 ms.
	maxSteps = 10_000_000

	errPattern = "ERR the pattern is too long: expected at most 1024 bytes"
	errCostly  = "ERR pattern too costly: its ? and [] behind a * were tried 10000000 times; use fewer of them, or letters"
)

// is says whether an argument is a word, in either case.
func is(arg []byte, word string) bool {
	if len(arg) != len(word) {
		return false
	}
	for i, c := range arg {
		if c != word[i] && lower(c) != lower(word[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// numberArg reads a whole number from low to high; what names it in a failure.
func numberArg(what string, arg []byte, low, high int64) int64 {
	n, ok := wire.ParseInt(arg)
	if !ok || n < low || n > high {
		panic(failure("ERR " + what + fmt.Sprintf(": expected a number from %d to %d, got %q", low, high, quoted(arg))))
	}
	return n
}

// textArg reads a text of low to high bytes.
func textArg(what string, arg []byte, low, high int64) []byte {
	if n := int64(len(arg)); n < low || n > high {
		panic(failure("ERR " + what + fmt.Sprintf(": expected %d to %d bytes, got %d", low, high, n)))
	}
	return arg
}

// intArg reads an argument that is a whole number.
func intArg(arg []byte) int64 { return countArg(arg, math.MinInt64, errNotInteger) }

// countArg reads an argument that is a whole number of at least low; refusal says that it is not.
func countArg(arg []byte, low int64, refusal failure) int64 {
	n, ok := wire.ParseInt(arg)
	if !ok || n < low {
		panic(refusal)
	}
	return n
}

// floatArg reads an argument that is a number; refusal says that it is not.
func floatArg(arg []byte, refusal failure) *big.Float {
	x, ok := wire.ParseFloat(arg)
	if !ok {
		panic(refusal)
	}
	return x
}

// patternArg compiles a pattern of names.
func patternArg(arg []byte) *glob.Pattern {
	g, err := glob.Compile(arg)
	if err != nil {
		refuse(errPattern)
	}
	return g
}

// takeQueues cuts the arguments of QPOP or QCLAIM into the queues, which OR joins, and the options.
// It returns one queue more than a request may name if there are too many.
func takeQueues(args [][]byte) (queues, options [][]byte) {
	queues, options = args[1:2:2], args[2:]
	for len(options) > 1 && is(options[0], "OR") && len(queues) <= broker.MaxSubscriptions {
		queues, options = append(queues, options[1]), options[2:]
	}
	return queues, options
}
