package model

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// repliesFile holds commands with the replies that Redis and Holdfast give: netproto/resp compares
// both with them, and says how they are written.
const repliesFile = "../../netproto/resp/testdata/replies.txt"

// player plays a script of that file to a model.
type player struct {
	*testing.T
	s     *Server
	line  int
	reply any            // to the last command
	sorts bool           // it is written in the order of bytes, whatever that is
	lacks bool           // a transaction has a command without a rule
	waits map[string]any // clients that wait, and what they got: Waits, as long as that is nothing
}

func TestTheModelRepliesAsWritten(t *testing.T) {
	b, err := os.ReadFile(repliesFile)
	if err != nil {
		t.Fatal(err)
	}
	var p *player
	lines, judged := strings.Split(string(b), "\n"), 0
	for i, line := range lines {
		switch kind, text, _ := strings.Cut(line, " "); {
		case kind == "#":
			p = &player{T: t, s: New(), waits: map[string]any{}}
			p.s.At(1_800_000_000_000, 0, All)
		case line == "restart":
			p.s.Restart(p.s.now, p.s.next, p.s.low, false)
		case kind == "=" && !strings.HasPrefix(lines[i+1], "! "), kind == "!":
			if p.reply == nil { // it is about a command that the model has no rule for
				continue
			}
			judged++
			got, _ := read(t, text)
			if p.sorts {
				p.reply = inOrderOfBytes(p.reply)
			}
			if err := Same(got, p.reply); err != nil && p.reply != (nothing{}) || p.reply == (nothing{}) && got != nil {
				t.Errorf("%s:%d: %v, by the model %v: %v", repliesFile, i+1, text, p.reply, err)
			}
		case strings.HasSuffix(kind, "<"):
			p.reply = p.told(p.waits["c"+kind[:1]])
		case strings.ContainsAny(kind, ">"):
			p.line = i + 1
			p.do(kind, argumentsOf(text))
		}
	}
	if judged < 1000 {
		t.Errorf("%d replies were judged", judged)
	}
}

// inOrderOfBytes is a reply whose elements are written in any order.
func inOrderOfBytes(reply any) any {
	switch v := reply.(type) {
	case Map:
		all := Bag{}
		for name := range v {
			all = append(all, name, v[name])
		}
		return all
	case OneOf:
		return inOrderOfBytes(v[0])
	case []any:
		all := []any{}
		for _, e := range v {
			all = append(all, inOrderOfBytes(e))
		}
		return all
	}
	return reply
}

// nothing is a reply that is null, for want of one.
type nothing struct{}

func (p *player) told(reply any) any {
	if reply == nil {
		return nothing{}
	}
	return reply
}

// do carries out a command, if the model has a rule for it, and then what waits.
func (p *player) do(kind string, words []string) {
	words[0] = strings.ToUpper(words[0])
	for i := range words[1:] {
		row, word := rowOf(words[0]), strings.ToUpper(words[1+i])
		if row != nil && slices.Contains(strings.FieldsFunc(row.Arguments, func(r rune) bool { return strings.ContainsRune(" []|", r) }), word) {
			words[1+i] = word
		}
	}
	client := "c" + strings.TrimRight(kind, ">~")
	p.sorts = strings.HasSuffix(kind, "~")
	switch p.reply = nil; {
	case words[0] == "RESET":
		p.s.Gone(client)
		return
	case strings.Contains("PING OBJECT COMMAND ROLE", words[0]):
		p.lacks = p.s.conns[client] != nil && p.s.conns[client].multi
		return
	case words[0] == "EXEC" && p.lacks:
		defer func() { p.reply, p.lacks = nil, false }()
	}
	reply := p.s.Do(client, words)
	if reply == (Waits{}) {
		p.waits[client] = reply
		return
	}
	for reply == (More{}) {
		reply = p.s.Do(client, words)
	}
	p.reply = p.told(reply)
	for p.serve() {
	}
}

// serve serves one of those that wait, and says whether there was one.
func (p *player) serve() bool {
	for client, got := range p.waits {
		if got != (Waits{}) {
			continue
		}
		for _, name := range p.s.conns[client].wait.names {
			if p.s.kind(name) != isList {
				continue
			}
			reply, err := p.s.Again(client, name)
			if p.waits[client] = reply; err != nil {
				p.waits[client] = Waits{}
			} else if reply != (Waits{}) {
				return true
			}
		}
	}
	return false
}

var word = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`)

// argumentsOf are the arguments of a command.
func argumentsOf(text string) (all []string) {
	for _, w := range word.FindAllString(text, -1) {
		all = append(all, unquoted(w))
	}
	return all
}

var run = regexp.MustCompile(`\{(\d+):(.)\}`)

func unquoted(text string) string {
	if s, err := strconv.Unquote(text); err == nil {
		text = s
	}
	return run.ReplaceAllStringFunc(text, func(s string) string {
		m := run.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[1])
		return strings.Repeat(m[2], n)
	})
}

// behind is what stands behind an error that is in an array.
var behind = regexp.MustCompile(` [-:"+\[$*]|\]$`)

// read reads a reply. Maps are names and values in turn.
func read(t *testing.T, text string) (v any, rest string) {
	t.Helper()
	switch {
	case text == "":
		t.Fatalf("a reply ends in the middle")
	case text[0] == '"':
		quoted := word.FindString(text)
		return unquoted(quoted), text[len(quoted):]
	case text[0] == '[', strings.HasPrefix(text, "%["):
		all := []any{}
		for text = text[strings.Index(text, "[")+1:]; text[0] != ']'; text = strings.TrimPrefix(text, " ") {
			v, text = read(t, text)
			all = append(all, v)
		}
		return all, text[1:]
	case text[0] == '-':
		end := len(text)
		if at := behind.FindStringIndex(text); at != nil {
			end = at[0]
		}
		return Err(text[1:end]), text[end:]
	}
	end := strings.IndexAny(text+" ", " ]")
	one, rest := text[:end], text[end:]
	if n, err := strconv.ParseInt(one[1:], 10, 64); one[0] == ':' && err == nil {
		return n, rest
	} else if one[0] == '+' {
		return one[1:], rest
	}
	return nil, rest
}
