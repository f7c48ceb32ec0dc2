package resp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What random commands are made of. There are few names and values, so that they meet.
var (
	someNames  = []string{"a", "b", "c", "d"}
	someFields = []string{"f", "g", "h", ""}
	someValues = []string{"", "x", "y", "x", "1", "-7", "3.5", "9223372036854775807", strings.Repeat("z", 2000), strings.Repeat("w", 1500)}
	someInts   = []string{"0", "1", "2", "3", "5", "-1", "-2", "-3", "-9223372036854775808", "9223372036854775807", "x", "1500"}
	someEnds   = []string{"LEFT", "RIGHT"}
)

// forms are commands. A word in lower case stands for what may be there: k a name, f a field, v a
// value, i an index, r a rank, e an end, t a time in seconds; with a plus it
// may be there several times.
var forms = strings.Split(strings.TrimSpace(`
LPUSH k v+
RPUSH k v+
LPUSH k v v v
RPUSH k v v v
LPUSHX k v+
RPUSHX k v
LPOP k
RPOP k
LPOP k i
RPOP k i
LLEN k
LRANGE k i i
LRANGE k 0 -1
LINDEX k i
LSET k i v
LINSERT k BEFORE v v
LINSERT k AFTER v v
LREM k i v
LREM k 0 v
LTRIM k i i
LPOS k v
LPOS k v RANK r
LPOS k v COUNT i
LPOS k v RANK r COUNT i MAXLEN i
RPOPLPUSH k k
LMOVE k k e e
LMPOP 2 k k e
LMPOP 1 k e COUNT i
GET k
SET k v
SET k v NX
SET k v XX
SET k v GET
SET k v EX t
SET k v KEEPTTL
SET k v XX GET EX t
SETNX k v
SETEX k t v
PSETEX k 100000 v
GETSET k v
GETDEL k
GETEX k
GETEX k EX t
GETEX k PERSIST
MGET k+
MSET k v k v
MSETNX k v k v
INCR k
DECR k
INCRBY k i
DECRBY k i
INCRBYFLOAT k v
APPEND k v
STRLEN k
GETRANGE k i i
SETRANGE k i v
HSET k f v
HSET k f v f v f v
HMSET k f v
HSETNX k f v
HGET k f
HMGET k f+
HGETALL k
HKEYS k
HVALS k
HDEL k f+
HEXISTS k f
HLEN k
HSTRLEN k f
HINCRBY k f i
HINCRBYFLOAT k f v
HSCAN k 0
DEL k
DEL k k
UNLINK k+
EXISTS k+
TYPE k
KEYS *
KEYS [ab]
SCAN 0 COUNT 100
SCAN 0 TYPE list COUNT 100
RENAME k k
RENAMENX k k
EXPIRE k t
EXPIRE k t NX
EXPIREAT k 33177117420 LT
EXPIREAT k 33177117421 GT
PEXPIREAT k 33177117420123 XX
TTL k
EXPIRETIME k
PERSIST k
DBSIZE
SELECT d
SELECT d
WATCH k
FLUSHDB
FLUSHALL
`), "\n")

// drawCommand makes a command of one of the forms.
func drawCommand(t *rapid.T, forms []string) []string {
	var args []string
	for i, word := range strings.Fields(rapid.SampledFrom(forms).Draw(t, "form")) {
		name, many := strings.CutSuffix(word, "+")
		pool := map[string][]string{
			"k": someNames, "f": someFields, "v": someValues, "i": someInts, "e": someEnds, "t": {"100", "200", "300", "0", "-1"},
			"d": {"0", "1", "15"}, "r": {"0", "1", "2", "3", "-1", "-2"},
		}[name]
		if i == 0 || pool == nil {
			args = append(args, word)
			continue
		}
		n := 1
		if many {
			n = rapid.IntRange(1, 3).Draw(t, "n")
		}
		for range n {
			args = append(args, rapid.SampledFrom(pool).Draw(t, name))
		}
	}
	return args
}

// steps are what may happen next, most often a command.
var steps = append(slices.Repeat([]string{""}, 40), "restart", "MULTI", "MULTI", "EXEC", "EXEC", "EXEC", "EXEC")

// lengths are how many commands are sent.
var lengths = []int{1, 3, 10, 30, 80}

// unordered are the commands whose replies are in any order.
var unordered = map[string]bool{
	"HGETALL": true, "HKEYS": true, "HVALS": true, "HSCAN": true, "KEYS": true, "SCAN": true,
}

// answer sends a command and returns its reply in a form that can be compared.
func answer(c *conn, args []string) string {
	r := c.do(args...)
	if unordered[args[0]] {
		r.sort()
	}
	return r.String()
}

// Both servers get the same commands, alone or in transactions. Holdfast is started anew now and
// then.
func TestSystemRandomCommandsReplyAsInRedis(t *testing.T) {
	redis := newOriginal(t)
	holdfast := newOther(t)
	rapid.Check(t, func(t *rapid.T) {
		theirs, ours := redis.dial(), holdfast.dial()
		defer func() {
			_ = theirs.Close()
			_ = ours.Close()
		}()
		answer(theirs, []string{"FLUSHALL"})
		answer(ours, []string{"FLUSHALL"})
		queued := false // in a transaction
		var history strings.Builder
		same := func(args []string) {
			holdfast.now = time.Now().UnixMilli() // as redis-server has it
			want, got := answer(theirs, args), answer(ours, args)
			fmt.Fprintf(&history, "%.40q\n", args)
			if got != want {
				t.Fatalf("%s%s, want %s", history.String(), got, want)
			}
		}
		for range rapid.SampledFrom(lengths).Draw(t, "commands") {
			switch step := rapid.SampledFrom(steps).Draw(t, "step"); {
			case step == "restart" && !queued:
				holdfast.restart()
				history.WriteString("restart\n")
				_ = theirs.Close()
				ours = holdfast.dial()
				theirs = redis.dial()
			case step == "MULTI" && !queued:
				same([]string{"MULTI"})
				queued = true
			case step == "EXEC" && queued:
				queued = false
				same([]string{"EXEC"})
			default:
				args := drawCommand(t, forms)
				if queued && (unordered[args[0]] || args[0] == "WATCH") {
					continue
				}
				same(args)
			}
		}
		if queued {
			same([]string{"EXEC"})
		}
	})
}
