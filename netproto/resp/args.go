package resp

import (
	"fmt"
	"strconv"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/glob"
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
		if lower(c) != lower(word[i]) {
			return false
		}
	}
	return true
}

// parseInt reads a signed 64-bit number the way Redis does: no plus sign, no space, no leading
// zero.
func parseInt(arg []byte) (n int64, ok bool) {
	digits := arg
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && (negative || len(digits) > 1) {
		return 0, false
	}
	var u uint64 // 19 digits fit
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if n = int64(u); negative {
		n = -n
	}
	return n, u < 1<<63 || negative && u == 1<<63
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// quoted is an argument as an error repeats it.
func quoted(arg []byte) []byte { return arg[:min(len(arg), maxQuoted)] }

// maxQuoted is how many bytes of a name, and of arguments, an error repeats.
const maxQuoted = 128

// failure is the error of a command that failed, in Redis's words. What reads an argument panics
// with one, and the session recovers it: a handler reads all arguments before it changes anything.
type failure string

func (f failure) Error() string { return string(f) }

// refuse panics with a failure.
func refuse(format string, a ...any) { panic(failure(fmt.Sprintf(format, a...))) }

// numberArg reads a whole number from low to high; what names it in a failure.
func numberArg(what string, arg []byte, low, high int64) int64 {
	n, ok := parseInt(arg)
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
