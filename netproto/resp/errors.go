package resp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
)

// Errors that many commands give, in Redis's words.
const (
	errSyntax     = "ERR syntax error"
	errNotInteger = "ERR value is not an integer or out of range"
	errNotFloat   = "ERR value is not a valid float"
	errOutOfRange = "ERR index out of range"
	errNames      = "ERR too many names: expected at most 1024"
	errNoKey      = "ERR no such key"
	errNotAllowed = "NOPERM this user has no permissions to access one of the keys used as arguments"
	errNoAuth     = "NOAUTH Authentication required."
	errWrongPass  = "WRONGPASS invalid username-password pair or user is disabled."
	errWrongType  = "WRONGTYPE Operation against a key holding the wrong kind of value"
)

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

// prefixes tell clients what kind of error of the broker it is. Any other is an ERR.
var prefixes = []struct {
	err    error
	prefix string
}{
	{broker.ErrNoSpace, "OOM command not allowed: "},
	{broker.ErrNoMemory, "OOM command not allowed: "},
	{broker.ErrStopped, "OOM command not allowed: "},
	{broker.ErrStale, "STALE "},
	{broker.ErrCancelled, "CANCELLED "},
	{broker.ErrUnknownQueue, "NOQUEUE "},
	{broker.ErrFull, "FULL "},
	{broker.ErrPaused, "PAUSED "},
	{broker.ErrQueueClosed, "CLOSED "},
	{broker.ErrInUse, "INUSE "},
}

// worded puts an error of the broker into words that Redis clients know.
func worded(err error) string {
	if f, ok := err.(failure); ok {
		return string(f)
	}
	for _, p := range prefixes {
		if errors.Is(err, p.err) {
			return p.prefix + err.Error()
		}
	}
	switch {
	case errors.Is(err, broker.ErrWrongType):
		return errWrongType
	case errors.Is(err, broker.ErrNoOrigin):
		return "ERR " + err.Error() + ": name one with TO"
	}
	return "ERR " + err.Error()
}

func wrongArity(name string) string {
	return fmt.Sprintf("ERR wrong number of arguments for '%s' command", name)
}

func unknownSubcommand(name string, sub []byte) string {
	if text := instead(name + "|" + string(quoted(sub))); text != "" {
		return fmt.Sprintf("ERR unknown subcommand '%s': Holdfast %s", quoted(sub), text)
	}
	return fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.", sub[:min(len(sub), maxQuoted)], strings.ToUpper(name))
}

// missing are Redis's commands that are not here, by how the names begin, and what Holdfast does
// instead.
var missing = []struct{ names, instead string }{
	{"eval fcall script function", "runs no scripts: MULTI, WATCH and EXEC make several commands one, and QPUSH, QCLAIM, QACK and QNACK are a whole job queue"},
	{"sadd scard sdiff sinter sismember smembers smismember smove spop srandmember srem sscan sunion",
		"has no sets: HSET, HDEL, HEXISTS and HKEYS keep names in a hash, and QPUSH with UNIQUE takes a job once"},
	{"z bz", "has no sorted sets: QPUSH with PRIO takes the best first, and with DELAY not before its time"},
	{"copy", "copies nothing: RENAME moves what has a name, and what was read can be pushed again"},
	{"hrandfield", "draws no fields: HKEYS and HSCAN list them"},
	{"randomkey", "draws no names: KEYS and SCAN list them"},
	{"acl|getuser acl|setuser acl|deluser acl|load acl|save", "has its users in its config file, and ACL LIST shows them"},
	{"client|no-evict client|no-touch", "evicts nothing: when connections hold too much together it closes the one that holds most"},
	{"client|tracking client|caching", "does not track what clients cache: have the client cache nothing, by DisableCache in rueidis"},
	{"config|set config|rewrite", "has its settings in its config file, and QSET sets those of a queue"},
	{"monitor", "shows what happens in a queue: holdfast tail, or SUBSCRIBE holdfast:tail:NAME"},
	{"slowlog latency", "keeps no list of slow commands: the operator's port has /metrics"},
	{"save bgsave bgrewriteaof lastsave", "has all on disk before it replies: holdfast backup makes a copy"},
	{"shutdown", "ends by SIGTERM"},
	{"debug", "tells all of a packet in QSHOW, and of the server in INFO"},
	{"cluster replicaof slaveof", "is one server without replicas: holdfast backup makes a copy"},
	{"x", "has no streams: QPUSH, QCLAIM, QACK and QEXTEND do what XADD, XREADGROUP, XACK and XCLAIM do"},
}

// instead is what Holdfast does in place of a command that is missing, "" if it has no word for it.
func instead(name string) string {
	name = strings.ToLower(name)
	for _, family := range missing {
		for prefix := range strings.FieldsSeq(family.names) {
			if strings.HasPrefix(name, prefix) {
				return family.instead
			}
		}
	}
	return ""
}
