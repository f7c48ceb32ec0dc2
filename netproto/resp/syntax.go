package resp

import (
	"reflect"
	"regexp"
	"strings"
)

// argument is one argument of a command, or several, in the terms of Redis 7's COMMAND DOCS.
type argument struct {
	name  string
	kind  string     // its type in Redis, which needs no value if it is "pure-token"
	token string     // the word that comes before; of a pure token the word itself
	flags []string   // "optional", "multiple", "multiple_token": the token is repeated, too
	parts []argument // of oneof and block
}

// syntax reads the language of words.Command.
type syntax struct {
	words []string // those not read yet
	names bool     // a name is a key
}

var (
	marks = strings.NewReplacer("[", " [ ", "]", " ] ", "…", " … ")
	// clauses are where | divides them, and not two words: "EX s|PX ms".
	clauses = regexp.MustCompile(`([a-z])\|([A-Z])`)
)

// parseArguments reads the arguments of a command. Only those of the work queue have names that are
// no keys.
func parseArguments(text string, names bool) []argument {
	s := syntax{strings.Fields(clauses.ReplaceAllString(marks.Replace(text), "$1 | $2")), names}
	forms := s.forms()
	if len(forms) == 1 {
		return forms[0]
	}
	return []argument{oneOf(forms)}
}

// forms reads what | divides, up to a ] or the end.
func (s *syntax) forms() (all [][]argument) {
	for {
		all = append(all, s.sequence())
		if len(s.words) == 0 || s.words[0] != "|" {
			return all
		}
		s.words = s.words[1:]
	}
}

func oneOf(forms [][]argument) argument {
	blocks := make([]argument, len(forms))
	for i, f := range forms {
		blocks[i] = together("block", f)
	}
	return together("oneof", blocks)
}

// sequence reads what stands side by side, up to a | or ] or the end.
func (s *syntax) sequence() (all []argument) {
	for len(s.words) > 0 && s.words[0] != "|" && s.words[0] != "]" {
		w := s.words[0]
		s.words = s.words[1:]
		switch {
		case w == "[":
			a := oneOf(s.forms())
			s.words = s.words[1:]
			a.flags = append([]string{"optional"}, a.flags...)
			all = append(all, a)
		case w == "…":
			all = repeated(all)
		case w[0] >= 'A' && w[0] <= 'Z' && !strings.Contains(w, "|"):
			all = append(all, s.clause(w))
		default:
			all = append(all, s.value(w))
		}
	}
	return all
}

// repeated makes the last argument one that may come many times.
func repeated(all []argument) []argument {
	before, last := all[:len(all)-1], all[len(all)-1]
	n := len(before) - len(last.parts)
	switch {
	case last.token != "" && last.flags != nil:
		last.flags = append(last.flags, "multiple", "multiple_token")
	case last.parts != nil && n >= 0 && reflect.DeepEqual(before[n:], last.parts):
		before = before[:n] // "name value [name value]…" is one block, the first of which is not optional
		last.flags = []string{"multiple"}
	default:
		last.flags = append(last.flags, "multiple")
	}
	return append(before, last)
}

// clause reads the values that belong to a token.
func (s *syntax) clause(token string) argument {
	var values []argument
	for len(s.words) > 0 && s.words[0][0] >= 'a' && s.words[0][0] <= 'z' {
		values = append(values, s.value(s.words[0]))
		s.words = s.words[1:]
	}
	if values == nil {
		return pureToken(token)
	}
	a := together("block", values)
	a.token = token
	return a
}

func (s *syntax) value(w string) argument {
	if words := strings.Split(w, "|"); len(words) > 1 {
		all := make([]argument, len(words))
		for i := range words {
			all[i] = pureToken(words[i])
		}
		return together("oneof", all)
	}
	return argument{name: w, kind: s.kind(w)}
}

func (s *syntax) kind(value string) string {
	switch value {
	case "name":
		if s.names {
			return "key"
		}
	case "queue", "from", "to", "other":
		return "key"
	case "pattern":
		return value
	case "timeout", "x":
		return "double"
	case "unix-seconds", "unix-ms":
		return "unix-time"
	case "client-id", "count", "cursor", "first", "index", "last", "ms", "n", "offset", "percent", "r", "s", "seconds", "token":
		return "integer"
	}
	return "string"
}

func pureToken(word string) argument {
	return argument{name: strings.ToLower(word), kind: "pure-token", token: word}
}

// together makes one argument of several, which is called as the first.
func together(kind string, parts []argument) argument {
	if len(parts) == 1 {
		return parts[0]
	}
	return argument{name: parts[0].name, kind: kind, parts: parts}
}
