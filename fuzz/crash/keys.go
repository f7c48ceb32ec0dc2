package crash

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// keyspace is what a server of the Redis protocol must hold under some names. It is slow and simple
// on purpose.
type keyspace map[string]*value

// value is a list, the left element first, or a string, or a hash.
type value struct {
	list   []string
	text   *string
	fields map[string]string
}

func (v *value) equal(o *value) bool {
	if v == nil || o == nil || v.text == nil || o.text == nil {
		return v == o || v != nil && o != nil && v.text == o.text && slices.Equal(v.list, o.list) && maps.Equal(v.fields, o.fields)
	}
	return *v.text == *o.text
}

// parts is what the value consists of, for a report.
func (v *value) parts() map[string]bool {
	all := map[string]bool{}
	if v == nil {
		return all
	}
	for _, e := range v.list {
		all[e] = true
	}
	if v.text != nil {
		all[*v.text] = true
	}
	for field, of := range v.fields {
		all[field+" "+of] = true
	}
	return all
}

// sketch is what the value is and how long, for a report.
func (v *value) sketch() string {
	switch {
	case v == nil:
		return "nothing"
	case v.text != nil:
		return brief(*v.text)
	case v.fields != nil:
		return fmt.Sprintf("%d fields", len(v.fields))
	}
	return fmt.Sprintf("%d elements", len(v.list))
}

func (v *value) clone() *value {
	return &value{list: slices.Clone(v.list), text: v.text, fields: maps.Clone(v.fields)}
}

// clone returns a copy that shares nothing which changes.
func (k keyspace) clone() keyspace {
	c := make(keyspace, len(k))
	for name, v := range k {
		c[name] = v.clone()
	}
	return c
}

func (k keyspace) list(name string) []string {
	if v := k[name]; v != nil {
		return v.list
	}
	return nil
}

func (k keyspace) text(name string) string {
	if v := k[name]; v != nil && v.text != nil {
		return *v.text
	}
	return ""
}

// put gives a name a value; an empty list or hash is none.
func (k keyspace) put(name string, v value) {
	if len(v.list) == 0 && v.text == nil && len(v.fields) == 0 {
		delete(k, name)
		return
	}
	k[name] = &v
}

// trimSlice is how many elements LTRIM deletes at once, unless in a transaction, or where it keeps
// no more than one for each trimByMove that go.
const (
	trimSlice  = 2048
	trimByMove = 32
)

// trimmedTo is what a trim in slices has left when so many elements are there: it begins at the
// left. ok is false if the commands are no such trim, or never leave so many.
func (k keyspace) trimmedTo(left int, commands [][]string) (part keyspace, ok bool) {
	args := commands[0]
	if len(commands) > 1 || args[0] != "LTRIM" {
		return nil, false
	}
	list, whole := k.list(args[1]), k.clone()
	whole.apply(commands)
	keep := len(whole.list(args[1]))
	from, _ := strconv.Atoi(args[2])
	gone, done := len(list)-keep, len(list)-left
	if gone <= trimSlice || trimByMove*keep <= gone || done <= 0 || done >= gone {
		return nil, false
	}
	right := max(done-from, 0) // of those that go behind what stays
	whole.put(args[1], value{list: slices.Concat(list[min(done, from):from+keep], list[from+keep+right:])})
	return whole, true
}

// Replies, as they are on the wire.
const (
	replyOK   = "+OK\r\n"
	replyNull = "$-1\r\n"
)

func replyInt(n int) string     { return fmt.Sprintf(":%d\r\n", n) }
func replyBulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func replyBool(yes bool) string {
	if yes {
		return replyInt(1)
	}
	return replyInt(0)
}

// transactionReply is the reply to so many commands as one, whose own replies are given.
func transactionReply(commands int, replies string) string {
	if commands == 1 {
		return replies
	}
	return replyOK + strings.Repeat("+QUEUED\r\n", commands) + fmt.Sprintf("*%d\r\n", commands) + replies
}

// apply carries out commands.
func (k keyspace) apply(commands [][]string) {
	for _, args := range commands {
		k.step(args)
	}
}

// step carries out one command, of those that the load sends, and returns the reply.
func (k keyspace) step(args []string) string {
	name := args[1]
	switch args[0] {
	case "DEL":
		_, had := k[name]
		delete(k, name)
		return replyBool(had)
	case "RENAME": // of a name that is there
		k[args[2]] = k[name]
		delete(k, name)
		return replyOK
	case "SET", "GET", "APPEND", "INCRBY", "SETRANGE", "GETRANGE":
		return k.stepString(args[0], name, args[2:])
	case "HSET", "HDEL":
		return k.stepHash(args[0], name, args[2:])
	}
	return k.stepList(args[0], name, args[2:])
}

func (k keyspace) stepString(command, name string, args []string) string {
	v, has := k[name]
	switch command {
	case "GET":
		if !has {
			return replyNull
		}
		return replyBulk(*v.text)
	case "SET":
		k.put(name, value{text: &args[0]})
		return replyOK
	case "GETRANGE":
		text := k.text(name)
		from, _ := strconv.Atoi(args[0])
		to, _ := strconv.Atoi(args[1])
		return replyBulk(text[min(from, len(text)):min(to+1, len(text))])
	case "APPEND", "SETRANGE":
		text := []byte(k.text(name))
		at := len(text)
		if command == "SETRANGE" {
			at, _ = strconv.Atoi(args[0])
		}
		data := args[len(args)-1]
		text = append(text, make([]byte, max(at+len(data)-len(text), 0))...)
		copy(text[at:], data)
		patched := string(text)
		k.put(name, value{text: &patched})
		return replyInt(len(text))
	}
	n, _ := strconv.Atoi(k.text(name))
	by, _ := strconv.Atoi(args[0])
	text := strconv.Itoa(n + by)
	k.put(name, value{text: &text})
	return replyInt(n + by)
}

func (k keyspace) stepHash(command, name string, args []string) string {
	fields := map[string]string{}
	if v := k[name]; v != nil {
		fields = v.fields
	}
	_, had := fields[args[0]]
	if command == "HDEL" {
		delete(fields, args[0])
		k.put(name, value{fields: fields})
		return replyBool(had)
	}
	fields[args[0]] = args[1]
	k.put(name, value{fields: fields})
	return replyBool(!had)
}

func (k keyspace) stepList(command, name string, args []string) string {
	list := k.list(name)
	at := -1
	reply := func() string { return replyInt(len(list)) }
	switch command {
	case "LLEN":
	case "LPUSH":
		for _, v := range args {
			list = slices.Insert(list, 0, v)
		}
	case "RPUSH":
		list = append(list, args...)
	case "LPOP", "RPOP", "RPOPLPUSH":
		if len(list) == 0 {
			return replyNull
		}
		if at = len(list) - 1; command == "LPOP" {
			at = 0
		}
		taken := list[at]
		list = slices.Delete(list, at, at+1)
		reply = func() string { return replyBulk(taken) }
		if command == "RPOPLPUSH" {
			k.put(name, value{list: list})
			name, list = args[0], slices.Insert(k.list(args[0]), 0, taken)
		}
	case "LREM": // of one element at most
		if at = slices.Index(list, args[1]); at >= 0 {
			list = slices.Delete(list, at, at+1)
		}
		reply = func() string { return replyBool(at >= 0) }
	case "LINSERT": // before an element that is there
		list = slices.Insert(list, slices.Index(list, args[1]), args[2])
	case "LSET":
		at, _ = strconv.Atoi(args[0])
		list[at] = args[1]
		reply = func() string { return replyOK }
	case "LTRIM":
		from, _ := strconv.Atoi(args[0])
		to, _ := strconv.Atoi(args[1])
		list = slices.Clone(list[min(from, len(list)):max(min(to+1, len(list)), min(from, len(list)))])
		reply = func() string { return replyOK }
	}
	k.put(name, value{list: list})
	return reply()
}
