package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The rules of barbershop are those of netproto/barbershop/PROTOCOL.md.

// Board is the queue of database 0 that is the board.
const Board = "board"

const board = "0" + Board

// lines are how many words a line of the first dialect has, and one of the second.
var lines = map[string]int{"update": 3, "next": 1, "stats": 1, "UPDATE": 3, "NEXT": 1, "PEEK": 1, "SCORE": 2, "INFO": 1}

// Barbershop carries out a line without its end. ends says that the connection does behind the
// reply, in which CR LF stands between lines.
func (s *Server) Barbershop(client, line string) (reply any, ends bool) {
	o, long := s.connOf(client), len(line) > 1024
	words := strings.FieldsFunc(line[:min(len(line), 1024)], func(r rune) bool { return r == ' ' })
	name := ""
	if len(words) > 0 {
		name = words[0]
		o.second = strings.ToUpper(name) == name && strings.ToLower(name) != name
	}
	mistake, failure, plus, unknown := Err("CLIENT_ERROR "), Err("SERVER_ERROR "), "", "ERROR"
	if o.second {
		mistake, failure, plus, unknown = "-ERROR ", "-ERROR ", "+", "-ERROR"
	}
	n, known := lines[name]
	switch {
	case strings.EqualFold(name, "POST"), strings.EqualFold(name, "Host:"), !long && (strings.HasSuffix(line, " HTTP/1.0") || strings.HasSuffix(line, " HTTP/1.1")):
		return mistake, true
	case long:
		return mistake, false
	case !known, n != len(words) && o.second:
		return unknown, false
	case n != len(words):
		return mistake, false
	}
	var numbers []uint64
	for i, word := range words[1:] {
		n, err := strconv.ParseUint(word, 10, 32)
		if numbers = append(numbers, n); o.second && (err != nil || n == 0) {
			return []string{"-ERROR INVALID ITEM ID", "-ERROR INVALID SCORE"}[i], false
		} else if err != nil {
			return mistake, false
		}
	}
	said, fails := s.onBoard(client, strings.ToLower(name), numbers)
	switch {
	case fails:
		return failure, false
	case name == "stats" || name == "INFO":
		return said, false
	}
	return plus + said, false
}

// onBoard carries out a command, or fails.
func (s *Server) onBoard(client, name string, numbers []uint64) (said string, fails bool) {
	kind, list := s.kind(board), s.line(board, false)
	type pool struct {
		prio int64
		wide bool // such packets are counted as a pool of their own
	}
	pools := map[pool]bool{}
	for _, p := range list {
		pools[pool{p.prio, wide(p)}] = true
	}
	uptime, updates, items := uint32(s.now/1000), uint32(s.updates), len(list)
	switch {
	case s.room == Stuck, s.takes() != nil && (name == "update" || name == "next"):
		return "", true
	case name == "stats":
		return fmt.Sprintf("STAT uptime %d\r\nSTAT version v\r\nSTAT updates %d\r\nSTAT items %d\r\nSTAT items_gc %[3]d\r\nSTAT pools %d\r\nSTAT pools_gc %[4]d\r\nEND", uptime, updates, items, len(pools)), false
	case name == "info":
		return fmt.Sprintf("uptime:%d\r\nversion:v\r\nupdates:%d\r\nitems:%d\r\npools:%d", uptime, updates, items, len(pools)), false
	case kind != isNone && kind != isList:
		return "", true
	case name == "next" || name == "peek":
		return s.nextItem(name == "next")
	}
	key := fmt.Sprint(numbers[0])
	has := slices.DeleteFunc(s.in(board, ready, delayed, claimed, dead), func(p *packet) bool { return p.key == nil || *p.key != key })
	switch {
	case len(has) > 1:
		return "", true
	case name == "update":
		return "OK", s.update(client, key, has, numbers[1]) != nil
	case len(has) == 0 || has[0].prio == 0:
		return "-1", false
	}
	return fmt.Sprint(scoreOf(has[0].prio)), false
}

// nextItem is the best item, which is taken or not. Who only looks sees it also while the queue is
// paused.
func (s *Server) nextItem(takes bool) (said string, fails bool) {
	list := s.selects(board, choice{most: 1, plain: !takes, accepts: func(*packet) bool { return true }})
	if len(list) == 0 || takes && s.settings(board).pauseOut {
		return "-1", false
	}
	if list[0].key == nil {
		return "", true
	}
	key := *list[0].key
	if n, err := strconv.ParseUint(key, 10, 32); err != nil || fmt.Sprint(n) != key {
		return "", true
	}
	if takes {
		s.takeAll(s.group(list[0]))
	}
	return key, false
}

// scoreOf is the score of an item with a priority. The two highest are one pool.
func scoreOf(prio int64) uint64 {
	if prio <= 1 {
		return math.MaxUint32
	}
	return uint64(math.MaxUint32 - prio)
}

// update raises the score of an item, or introduces it, or says what refuses that.
func (s *Server) update(client, key string, has []*packet, by uint64) (no any) {
	if len(has) > 0 && has[0].prio > 0 {
		by += scoreOf(has[0].prio)
	}
	prio := max(1, math.MaxUint32-int64(min(by, math.MaxUint32)))
	switch {
	case len(has) == 0:
		no = s.bringOne(client, &packet{queue: board, prio: prio, key: &key}, 0)
	case has[0].prio != prio:
		if no = s.stores(); no != nil {
			break
		}
		p := has[0]
		s.touch(board)
		p.prio, p.pos = prio, s.number()
		if p.expiry == 0 && p.size() == int64(len(key)) && len(p.tags)+len(p.producer)+len(p.unique) == 0 && p.lease == 0 {
			p.enqueued = s.now // it is only an item, which is made anew
		}
	}
	if no == nil {
		s.updates++
	}
	return no
}
