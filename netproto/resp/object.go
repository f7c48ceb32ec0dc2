package resp

import "github.com/holdfast-queue/holdfast/broker"

// object answers what tools ask about a value's inside: what Redis would say of a small one.
func object(s *session, tx *broker.Tx, args [][]byte) error {
	what := args[1]
	if is(what, "help") && len(args) == 2 {
		s.array(len(objectHelp))
		for _, line := range objectHelp {
			s.simple(line)
		}
		return nil
	}
	var answer func(*broker.Tx, []byte) error
	var name string
	switch {
	case is(what, "encoding"):
		name, answer = "encoding", s.encoding
	case is(what, "refcount"):
		name, answer = "refcount", func(*broker.Tx, []byte) error { s.int(1); return nil }
	case is(what, "idletime"):
		name, answer = "idletime", func(*broker.Tx, []byte) error { s.int(0); return nil }
	case is(what, "freq"):
		name, answer = "freq", func(*broker.Tx, []byte) error { return failure(errNoFreq) }
	case is(what, "help"):
		return failure(wrongArity("object|help"))
	default:
		return failure("ERR unknown subcommand '" + string(what[:min(len(what), maxQuoted)]) + "'. Try OBJECT HELP.")
	}
	switch {
	case len(args) != 3:
		return failure(wrongArity("object|" + name))
	case tx.Type(args[2]) == broker.TypeNone:
		s.null()
		return nil
	}
	return answer(tx, args[2])
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
		v, _, err := tx.String(name)
		if err != nil {
			return err
		}
		text, err := tx.Bytes(v)
		if err != nil {
			return err
		}
		word = "raw"
		if _, ok := parseInt(text); ok {
			word = "int"
		} else if v.Size <= maxEmbedded {
			word = "embstr"
		}
	case broker.TypeHash:
		n, err := tx.HashLen(name)
		if err != nil {
			return err
		}
		word = "hashtable"
		if n <= maxDenseFields && dense(tx, name) {
			word = "listpack"
		}
	}
	s.bulkString(word)
	return nil
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
		s.null()
		return nil
	case broker.TypeString:
		v, _, err := tx.String(name)
		if err != nil {
			return err
		}
		size += int64(v.Size)
	case broker.TypeHash:
		n, err := tx.HashLen(name)
		if err != nil {
			return err
		}
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
	s.int(size)
	return nil
}
