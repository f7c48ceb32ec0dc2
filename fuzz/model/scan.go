package model

import (
	"cmp"
	"strconv"
	"strings"
)

// scan is SCAN and HSCAN.
func scan(s *Server, c call) any {
	hashed, from := c.words[0] == "HSCAN", 2
	if hashed {
		from = 3
	}
	cursor := c.words[from-1]
	if _, err := strconv.ParseUint(cursor, 10, 64); err != nil && cursor != "" {
		return Err("ERR")
	}
	fields := s.values[c.name].fields
	if hashed && fields == nil { // the rest is not read
		return []any{"0", []any{}}
	}
	match, kind := "*", ""
	for at := from; at < len(c.words); at += 2 {
		switch word := c.words[at]; {
		case at+1 == len(c.words):
			return Err("ERR")
		case word == "COUNT":
			within(number(c.words[at+1]), 1, 1<<63-1)
		case word == "MATCH":
			match = c.words[at+1]
		case word == "TYPE" && !hashed:
			kind = cmp.Or(strings.ToLower(c.words[at+1]), isNone)
		default:
			return Err("ERR")
		}
	}
	all, whole := Among{}, any(nil)
	if hashed {
		pairs := Map{}
		for name, v := range fields {
			if like(match, name) {
				all = append(all, name, v)
				pairs[name] = v
			}
		}
		whole = pairs
	} else {
		for _, name := range s.names(s.conns[c.conn].db, kind) {
			if like(match, name[1:]) {
				all = append(all, name[1:])
			}
		}
		whole = Bag(all)
	}
	some := []any{Onward{}, all}
	if cursor != "0" && cursor != "" {
		return OneOf{[]any{"0", all}, some}
	}
	return OneOf{[]any{"0", whole}, some}
}

// like says that a name matches a pattern.
func like(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	rest := pattern[1:]
	switch pattern[0] {
	case '*':
		return like(rest, name) || name != "" && like(pattern, name[1:])
	case '[':
		end := strings.Index(rest, "]")
		if end > 0 && name != "" {
			return oneOfSet(rest[:end], name[0]) && like(rest[end+1:], name[1:])
		}
	case '\\':
		if rest != "" {
			return name != "" && rest[0] == name[0] && like(rest[1:], name[1:])
		}
	}
	return name != "" && (pattern[0] == '?' || pattern[0] == name[0]) && like(rest, name[1:])
}

// oneOfSet says that a byte is one of a set of a pattern.
func oneOfSet(set string, b byte) (is bool) {
	set, not := strings.CutPrefix(set, "^")
	for ; set != ""; set = set[1:] {
		if len(set) > 2 && set[1] == '-' {
			is = is || min(set[0], set[2]) <= b && b <= max(set[0], set[2])
			set = set[2:]
		} else {
			is = is || set[0] == b
		}
	}
	return is != not
}
