package resp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// model is what the server should hold, as plain Go values: []string is a list, string a string,
// map[string]string a hash. Nothing in it expires.
type model map[string]any

const (
	okReply    = "+OK"
	nilReply   = "$-1"
	noKeyReply = "-ERR no such key"
	typeReply  = "-WRONGTYPE Operation against a key holding the wrong kind of value"
	intReply   = "-ERR value is not an integer or out of range"
)

func number(n int) string { return ":" + strconv.Itoa(n) }

func texts(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, " ") + "]"
}

// holds returns what has a name, as a T; wrong says that it is something else.
func holds[T any](m model, name string) (value T, wrong bool) {
	v, there := m[name]
	value, ok := v.(T)
	return value, there && !ok
}

func (m model) setList(name string, list []string) {
	if len(list) == 0 {
		delete(m, name)
	} else {
		m[name] = list
	}
}

// do carries out a command and returns the reply, as reply.String writes it.
func (m model) do(args []string) string {
	name := args[min(1, len(args)-1)]
	switch args[0] {
	case "FLUSHALL":
		clear(m)
		return okReply
	case "DBSIZE":
		return number(len(m))
	case "DEL", "EXISTS":
		n := 0
		for _, name := range args[1:] {
			if _, there := m[name]; there {
				n++
			}
			if args[0] == "DEL" {
				delete(m, name)
			}
		}
		return number(n)
	case "TYPE":
		switch m[name].(type) {
		case []string:
			return "+list"
		case string:
			return "+string"
		case map[string]string:
			return "+hash"
		}
		return "+none"
	case "RENAME":
		return m.rename(args[1], args[2])
	case "HSET", "HGET", "HDEL", "HLEN", "HGETALL":
		return m.doHash(args)
	case "GET", "SET", "APPEND", "STRLEN", "INCRBY", "SETRANGE", "GETDEL":
		return m.doString(args)
	}
	return m.doList(args)
}

func (m model) rename(from, to string) string {
	value, there := m[from]
	if !there {
		return noKeyReply
	}
	delete(m, from)
	m[to] = value
	return okReply
}

func (m model) doString(args []string) string {
	name := args[1]
	text, wrong := holds[string](m, name)
	_, there := m[name]
	if args[0] == "SET" {
		m[name] = args[2]
		return okReply
	}
	by := int64(0)
	if args[0] == "INCRBY" || args[0] == "SETRANGE" { // arguments are read before the type is seen
		var err error
		if by, err = strconv.ParseInt(args[2], 10, 64); err != nil {
			return intReply
		} else if args[0] == "SETRANGE" && by < 0 {
			return "-ERR offset is out of range"
		}
	}
	if wrong {
		return typeReply
	}
	switch args[0] {
	case "APPEND":
		m[name] = text + args[2]
		return number(len(text) + len(args[2]))
	case "STRLEN":
		return number(len(text))
	case "INCRBY":
		if !there {
			text = "0"
		}
		old, err := strconv.ParseInt(text, 10, 64)
		if err != nil || strconv.FormatInt(old, 10) != text { // Redis takes no 01, +1 or -0
			return intReply
		}
		if sum := old + by; (sum > old) == (by > 0) {
			m[name] = strconv.FormatInt(sum, 10)
			return ":" + m[name].(string)
		}
		return "-ERR increment or decrement would overflow"
	case "SETRANGE":
		switch {
		case args[3] == "":
			return number(len(text))
		case by > int64(1<<20-len(args[3])):
			return "-ERR string exceeds maximum allowed size (proto-max-bulk-len)"
		}
		at := int(by)
		data := make([]byte, max(len(text), at+len(args[3])))
		copy(data, text)
		copy(data[at:], args[3])
		m[name] = string(data)
		return number(len(data))
	case "GETDEL":
		delete(m, name)
	}
	if !there {
		return nilReply
	}
	return quote(text)
}

func (m model) doHash(args []string) string {
	name := args[1]
	hash, wrong := holds[map[string]string](m, name)
	if wrong {
		return typeReply
	}
	switch args[0] {
	case "HSET":
		if hash == nil {
			hash = make(map[string]string)
			m[name] = hash
		}
		before := len(hash)
		for i := 2; i < len(args); i += 2 {
			hash[args[i]] = args[i+1]
		}
		return number(len(hash) - before)
	case "HGET":
		if value, there := hash[args[2]]; there {
			return quote(value)
		}
		return nilReply
	case "HDEL":
		before := len(hash)
		for _, field := range args[2:] {
			delete(hash, field)
		}
		if len(hash) == 0 {
			delete(m, name)
		}
		return number(before - len(hash))
	case "HLEN":
		return number(len(hash))
	}
	var all []string
	for field, value := range hash {
		all = append(all, field, value)
	}
	r := reply{kind: '*'}
	for _, text := range all {
		r.elements = append(r.elements, reply{kind: '$', text: text})
	}
	r.sort()
	return r.String()
}

func (m model) doList(args []string) string {
	name := args[1]
	list, wrong := holds[[]string](m, name)
	if wrong {
		return typeReply
	}
	switch args[0] {
	case "LPUSH", "RPUSH":
		for _, v := range args[2:] {
			if args[0] == "LPUSH" {
				list = slices.Insert(slices.Clone(list), 0, v)
			} else {
				list = append(slices.Clone(list), v)
			}
		}
		m[name] = list
		return number(len(list))
	case "LLEN":
		return number(len(list))
	case "LRANGE":
		return texts(list)
	case "LPOP", "RPOP", "LMOVE", "RPOPLPUSH":
		return m.take(args, list)
	case "LREM":
		kept := slices.DeleteFunc(slices.Clone(list), func(v string) bool { return v == args[3] })
		m.setList(name, kept)
		return number(len(list) - len(kept))
	case "LINSERT":
		at := slices.Index(list, args[3])
		switch {
		case list == nil:
			return ":0"
		case at < 0:
			return ":-1"
		case args[2] == "AFTER":
			at++
		}
		m[name] = slices.Insert(slices.Clone(list), at, args[4])
		return number(len(list) + 1)
	case "LPOS":
		if at := slices.Index(list, args[2]); at >= 0 {
			return number(at)
		}
		return nilReply
	case "LTRIM":
		m.setList(name, list[min(1, len(list)):max(len(list)-1, min(1, len(list)))])
		return okReply
	}
	panic("the model has no " + args[0])
}

// take takes an element from one end and, if it is a move, adds it to a list.
func (m model) take(args, list []string) string {
	end := map[string]string{"LPOP": "LEFT", "RPOP": "RIGHT", "RPOPLPUSH": "RIGHT"}[args[0]]
	to, toEnd := "", ""
	switch args[0] {
	case "RPOPLPUSH":
		to, toEnd = args[2], "LEFT"
	case "LMOVE":
		end, to, toEnd = args[3], args[2], args[4]
	}
	if len(list) == 0 {
		return nilReply
	}
	if to != "" {
		if _, wrong := holds[[]string](m, to); wrong {
			return typeReply
		}
	}
	at := 0
	if end == "RIGHT" {
		at = len(list) - 1
	}
	value := list[at]
	m.setList(args[1], slices.Delete(slices.Clone(list), at, at+1))
	if to != "" {
		target, _ := holds[[]string](m, to)
		if toEnd == "LEFT" {
			m[to] = slices.Insert(slices.Clone(target), 0, value)
		} else {
			m[to] = append(slices.Clone(target), value)
		}
	}
	return quote(value)
}

// modelForms are the commands that the model knows.
var modelForms = strings.Split(strings.TrimSpace(`
LPUSH k v+
RPUSH k v+
LPUSH k v v v
RPUSH k v v v
LPOP k
RPOP k
LLEN k
LRANGE k 0 -1
LREM k 0 v
LINSERT k BEFORE v v
LINSERT k AFTER v v
LPOS k v
LTRIM k 1 -2
RPOPLPUSH k k
LMOVE k k e e
GET k
SET k v
APPEND k v
STRLEN k
INCRBY k i
SETRANGE k i v
GETDEL k
HSET k f v
HSET k f v f v
HGET k f
HDEL k f+
HLEN k
HGETALL k
DEL k
DEL k k k
EXISTS k k
TYPE k
RENAME k k
DBSIZE
FLUSHALL
`), "\n")

func TestRandomCommandsFollowAModel(t *testing.T) {
	holdfast := newOther(t)
	rapid.Check(t, func(t *rapid.T) {
		c := holdfast.dial()
		defer func() { _ = c.Close() }()
		m := make(model)
		c.do("FLUSHALL")
		var history strings.Builder
		for range rapid.SampledFrom(lengths).Draw(t, "commands") {
			if rapid.SampledFrom(steps).Draw(t, "step") == "restart" {
				history.WriteString("restart\n")
				holdfast.restart()
				c = holdfast.dial()
			}
			args := drawCommand(t, modelForms)
			fmt.Fprintf(&history, "%.40q\n", args)
			want := m.do(args)
			if got := answer(c, args); got != want {
				t.Fatalf("%s%.300s, want %.300s", history.String(), got, want)
			}
		}
	})
}
