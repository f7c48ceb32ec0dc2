package resp

import (
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// objectAnswers are what OBJECT answers about the value of a name that is there.
var objectAnswers = map[string]func(s *session, tx *broker.Tx, name []byte) error{
	"encoding": (*session).encoding,
	"refcount": func(s *session, _ *broker.Tx, _ []byte) error { return s.int(1) },
	"idletime": func(s *session, _ *broker.Tx, _ []byte) error { return s.int(0) },
	"freq":     func(*session, *broker.Tx, []byte) error { return failure(errNoFreq) },
	"help":     nil,
}

// object answers what tools ask about a value's inside: what Redis would say of a small one.
func object(s *session, tx *broker.Tx, args [][]byte) error {
	what := strings.ToLower(string(quoted(args[1])))
	answer, known := objectAnswers[what]
	switch {
	case !known:
		return failure(unknownSubcommand("object", args[1]))
	case answer == nil && len(args) == 2:
		s.array(len(objectHelp))
		for _, line := range objectHelp {
			s.simple(line)
		}
		return nil
	case answer == nil || len(args) != 3:
		return failure(wrongArity("object|" + what))
	case !isThere(tx, args[2]):
		return s.null()
	}
	return answer(s, tx, args[2])
}

const errNoFreq = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."

var objectHelp = []string{
	"OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
	"ENCODING <key>",
	"    Return the kind of internal representation used in order to store the value",
	"    associated with a <key>.",
	"FREQ <key>",
	"    Return the access frequency index of the <key>. The returned integer is",
	"    proportional to the logarithm of the recent access frequency of the key.",
	"IDLETIME <key>",
	"    Return the idle time of the <key>, that is the approximated number of",
	"    seconds elapsed since the last access to the key.",
	"REFCOUNT <key>",
	"    Return the number of references of the value associated with the specified",
	"    <key>.",
	"HELP",
	"    Prints this help.",
}

// Up to these sizes Redis uses its denser encodings.
const (
	maxEmbedded     = 44  // bytes of a string
	maxDenseFields  = 128 // fields of a hash
	maxDenseElement = 64  // bytes of a field's name or value
)

func (s *session) encoding(tx *broker.Tx, name []byte) error {
	word := "quicklist"
	switch tx.Type(name) {
	case broker.TypeString:
		v, _, _ := tx.String(name) // it is one
		text, err := tx.Bytes(v)
		if err != nil {
			return err
		}
		word = "raw"
		if _, ok := wire.ParseInt(text); ok {
			word = "int"
		} else if v.Size <= maxEmbedded {
			word = "embstr"
		}
	case broker.TypeHash:
		word = "hashtable"
		if n, _ := tx.HashLen(name); n <= maxDenseFields && dense(tx, name) { // it is one
			word = "listpack"
		}
	}
	return s.bulkString(word)
}

// dense says that all fields of a hash and their values are short.
func dense(tx *broker.Tx, name []byte) bool {
	short := true
	_ = tx.Fields(name, func(field []byte, v broker.Value) bool {
		short = len(field) <= maxDenseElement && v.Size <= maxDenseElement
		return short
	})
	return short
}

// What a name, a field and an element take besides their bytes, roughly.
const (
	nameOverhead = 64
	partOverhead = 48
)

// memoryUsage estimates the bytes of a value. A few fields or elements stand for all.
func memoryUsage(s *session, tx *broker.Tx, args [][]byte) error {
	name := args[2]
	if len(args) != 3 && (len(args) != 5 || !is(args[3], "samples")) {
		return failure(errSyntax)
	}
	const samples = 5
	size := int64(len(name) + nameOverhead)
	switch tx.Type(name) {
	case broker.TypeNone:
		return s.null()
	case broker.TypeString:
		v, _, _ := tx.String(name) // it is one
		size += int64(v.Size)
	case broker.TypeHash:
		n, _ := tx.HashLen(name) // it is one
		seen, bytes := int64(0), int64(0)
		_ = tx.Fields(name, func(field []byte, v broker.Value) bool {
			seen, bytes = seen+1, bytes+int64(len(field)+v.Size+partOverhead)
			return seen < samples
		})
		size += bytes * int64(n) / max(seen, 1)
	default:
		q, _, err := tx.QueueStats(name)
		if err != nil {
			return err
		}
		size += q.Bytes + int64(q.Ready)*partOverhead
	}
	return s.int(size)
}
