package resp

import (
	_ "embed"
	"strings"
)

// document has a table row for each command. COMMAND DOCS says what is there and nothing else, so
// that the two cannot differ.
//
//go:embed COMMANDS.md
var document string

// documentGroups are Redis's words for sections of the document that are called otherwise.
var documentGroups = map[string]string{
	"channels": "pubsub", "lists": "list", "work queue": "queue",
	"strings": "string", "hashes": "hash", "names": "generic",
}

// docs is what the document says of a command.
type docs struct {
	summary, group string
	arguments      []argument
}

// documentRow is the row of a command. Most have one form.
type documentRow struct {
	group          string
	forms          []string
	reply, remarks string
}

func documentRows() (rows []documentRow) {
	group := ""
	for line := range strings.Lines(document) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			group = strings.ToLower(strings.TrimSpace(heading))
			if other := documentGroups[group]; other != "" {
				group = other
			}
		}
		if strings.HasPrefix(line, "| `") && line[3] >= 'A' && line[3] <= 'Z' {
			cells := strings.Split(line, " | ")
			row := documentRow{group: group, reply: cells[1], remarks: strings.Trim(cells[2], " |\n")}
			for i, text := range strings.Split(cells[0], "`") {
				if i%2 == 1 {
					row.forms = append(row.forms, text)
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// readDocs reads what the document says of the commands in the table, by the names of those.
func readDocs(table map[string]*command) map[string]docs {
	all := make(map[string]docs)
	for _, row := range documentRows() {
		d := docs{summary: "reply: " + row.reply, group: row.group}
		if row.remarks != "" {
			d.summary += "; " + row.remarks
		}
		for _, form := range row.forms {
			c, words := documented(table, form)
			if c == nil {
				break // it is disabled
			}
			s := syntax{words: words, keys: c.flags&flagLocal == 0, queues: row.group == "queue"}
			arguments := s.sequence()
			if d.arguments != nil { // the other form
				arguments = []argument{together("oneof", []argument{together("block", d.arguments), together("block", arguments)})}
			}
			d.arguments = arguments
			all[c.name] = d
		}
	}
	return all
}

// documented finds the command whose syntax this is, and returns the words that are its arguments.
func documented(table map[string]*command, form string) (c *command, arguments []string) {
	words := syntaxWords(form)
	c = table[strings.ToLower(words[0])]
	if c != nil && len(words) > 1 && c.sub[strings.ToLower(words[1])] != nil {
		return c.sub[strings.ToLower(words[1])], words[2:]
	}
	return c, words[1:]
}

// describeDocs replies with a command's name, and the map that is its documentation in Redis 7.
func (s *session) describeDocs(c *command) {
	if s.protocol.docs == nil {
		s.protocol.docs = readDocs(s.protocol.table)
	}
	d, ok := s.protocol.docs[c.name]
	if !ok { // it only holds others, and has no row
		d = docs{summary: "a container of commands", group: s.protocol.docs[c.subs[0].name].group}
	}
	s.bulkString(c.name)
	fast := c.flags&flagFast != 0
	s.mapHeader(2 + trues(fast, d.arguments != nil, c.subs != nil))
	s.bulkString("summary", d.summary, "group", d.group)
	if fast {
		s.bulkString("complexity", "the same however much is stored")
	}
	if d.arguments != nil {
		s.bulkString("arguments")
		s.describeArguments(d.arguments)
	}
	if c.subs != nil {
		s.bulkString("subcommands")
		s.mapHeader(len(c.subs))
		for i := range c.subs {
			s.describeDocs(&c.subs[i])
		}
	}
}

func (s *session) describeArguments(all []argument) {
	s.array(len(all))
	for _, a := range all {
		s.mapHeader(2 + trues(a.token != "", a.flags != nil, a.parts != nil))
		s.bulkString("name", a.name, "type", a.kind)
		if a.token != "" {
			s.bulkString("token", a.token)
		}
		if a.flags != nil {
			s.bulkString("flags")
			s.set(len(a.flags))
			for _, f := range a.flags {
				s.simple(f)
			}
		}
		if a.parts != nil {
			s.bulkString("arguments")
			s.describeArguments(a.parts)
		}
	}
}

func trues(all ...bool) (n int) {
	for _, yes := range all {
		if yes {
			n++
		}
	}
	return n
}
