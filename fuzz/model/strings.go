package model

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// stringOf is what GET replies.
func (s *Server) stringOf(name string) any {
	if v, there := s.values[name]; there && v.fields == nil {
		return v.text
	}
	return nil
}

// Strings are the values of all strings.
func (s *Server) Strings() (all []string) {
	for _, v := range s.values {
		all = append(all, v.text)
	}
	return all
}

func get(s *Server, c call) any { return s.stringOf(c.name) }

// setOptions are those of SET and GETEX.
type setOptions struct {
	flags  []string
	expiry int64 // 0: isNone was given
}

// setOptions reads the options behind some words. Of those that say when a string expires there may
// be one, which may come again.
func (s *Server) setOptions(c call, from int, flags ...string) (o setOptions) {
	unit, value := "", ""
	for at := from; at < len(c.words); at++ {
		switch word := c.words[at]; {
		case slices.Contains(flags, word):
			o.flags = append(o.flags, word)
		case slices.Contains([]string{"EX", "PX", "EXAT", "PXAT"}, word) && (unit == "" || unit == word) && at+1 < len(c.words):
			at++
			unit, value = word, c.words[at]
		default:
			panic(Err("ERR"))
		}
	}
	if o.has("NX") && o.has("XX") || unit != "" && (o.has("KEEPTTL") || o.has("PERSIST")) {
		panic(Err("ERR"))
	}
	if unit != "" {
		if c.words[0] == "GETEX" && s.stringOf(c.name) == nil { // it is not read
			return o
		}
		o.expiry = s.until(value, unit)
	}
	return o
}

func (o setOptions) has(flag string) bool { return slices.Contains(o.flags, flag) }

// until reads a time that must be to come.
func (s *Server) until(value, unit string) int64 {
	if number(value) <= 0 {
		panic(Err("ERR"))
	}
	return s.moment(value, strings.HasPrefix(unit, "E"), strings.HasSuffix(unit, "AT"))
}

func set(s *Server, c call) any {
	o := s.setOptions(c, 3, "NX", "XX", "GET", "KEEPTTL")
	was, kind, ok := s.stringOf(c.name), s.kind(c.name), any("OK")
	if o.has("GET") {
		if ok = was; kind != isNone && kind != isString {
			return Err("WRONGTYPE")
		}
	}
	if o.has("NX") && kind != isNone || o.has("XX") && kind == isNone {
		if o.has("GET") {
			return was
		}
		return nil
	}
	if o.has("KEEPTTL") {
		o.expiry = s.expiryOf(c.name)
	}
	if o.expiry != 0 && o.expiry <= s.now {
		s.vacate(c.name)
	} else {
		s.put(c.name, value{text: c.words[2], expiry: o.expiry})
	}
	return ok
}

func setnx(s *Server, c call) any {
	if s.kind(c.name) != isNone {
		return int64(0)
	}
	s.put(c.name, value{text: c.words[2]})
	return int64(1)
}

func setex(s *Server, c call) any {
	s.put(c.name, value{text: c.words[3], expiry: s.until(c.words[2], map[string]string{"SETEX": "EX", "PSETEX": "PX"}[c.words[0]])})
	return "OK"
}

func getset(s *Server, c call) any {
	was := s.stringOf(c.name)
	s.put(c.name, value{text: c.words[2]})
	return was
}

func getdel(s *Server, c call) any {
	was := s.stringOf(c.name)
	s.vacate(c.name)
	return was
}

func getex(s *Server, c call) any {
	o := s.setOptions(c, 2, "PERSIST")
	was := s.stringOf(c.name)
	if was != nil && (o.expiry != 0 || o.has("PERSIST")) {
		s.setExpiry(c.name, o.expiry)
	}
	return was
}

func mget(s *Server, c call) any {
	all := []any{}
	for _, name := range c.words[1:] {
		all = append(all, s.stringOf(c.name[:1]+name))
	}
	return all
}

func mset(s *Server, c call) any {
	if len(c.words)%2 == 0 {
		return Err("ERR")
	}
	for at := 1; at < len(c.words); at += 2 {
		s.put(c.name[:1]+c.words[at], value{text: c.words[at+1]})
	}
	return "OK"
}

func msetnx(s *Server, c call) any {
	if len(c.words)%2 == 0 {
		return Err("ERR")
	}
	for at := 1; at < len(c.words); at += 2 {
		if s.kind(c.name[:1]+c.words[at]) != isNone {
			return int64(0)
		}
	}
	mset(s, c)
	return int64(1)
}

// setrange is SETRANGE and APPEND.
func setrange(s *Server, c call) any {
	v := s.values[c.name]
	at, bytes := int64(len(v.text)), c.words[len(c.words)-1]
	if c.words[0] == "SETRANGE" {
		if at = number(c.words[2]); at < 0 {
			return Err("ERR")
		}
		if bytes == "" {
			return int64(len(v.text))
		}
	}
	if at > int64(1<<20-len(bytes)) {
		return Err("ERR")
	}
	text := v.text + strings.Repeat("\x00", max(0, int(at)-len(v.text)))
	v.text = text[:at] + bytes + text[min(len(text), int(at)+len(bytes)):]
	s.put(c.name, v)
	return int64(len(v.text))
}

// getrange is GETRANGE, SUBSTR and STRLEN.
func getrange(s *Server, c call) any {
	text := s.values[c.name].text
	n := int64(len(text))
	if c.words[0] == "STRLEN" {
		return n
	}
	first, last := number(c.words[2]), number(c.words[3])
	if first < 0 && last < 0 && first > last {
		return ""
	}
	if last < 0 {
		last = max(last+n, 0)
	}
	from, count := extent(first, last, n)
	return text[from : from+count]
}

// extent turns the first and last position of a range, which count from the end if they are
// negative, into a position and a number.
func extent(first, last, n int64) (from, count int64) {
	if first < 0 {
		first = max(first+n, 0)
	}
	if last < 0 {
		last += n
	}
	if last = min(last, n-1); first > last {
		return 0, 0
	}
	return first, last - first + 1
}

func incr(s *Server, c call) any {
	by := int64(1)
	if len(c.words) > 2 {
		by = number(c.words[2])
	}
	if strings.HasPrefix(c.words[0], "DECR") {
		if by == math.MinInt64 {
			return Err("ERR")
		}
		by = -by
	}
	v, there := s.values[c.name]
	v.text = sum(v.text, there, by)
	s.put(c.name, v)
	return number(v.text)
}

// sum adds to a number that a text is, and is 0 where there is isNone.
func sum(text string, there bool, by int64) string {
	if !there {
		text = "0"
	}
	n := number(text)
	if by > 0 && n > math.MaxInt64-by || by < 0 && n < math.MinInt64-by {
		panic(Err("ERR"))
	}
	return strconv.FormatInt(n+by, 10)
}
