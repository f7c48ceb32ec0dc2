package words

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of the documents anew")

// document explains the words to users.
const document = "../resp/COMMANDS.md"

// escaped is a text in a cell of a table.
func escaped(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// forms are the command with each form of its arguments.
func (c *Command) forms() (forms []string) {
	for _, arguments := range divide(c.Syntax()) {
		forms = append(forms, strings.TrimSpace(c.Name+" "+arguments))
	}
	return forms
}

// divide divides arguments at each " | " that is outside of [].
func divide(arguments string) (parts []string) {
	depth, from := 0, 0
	for i, c := range arguments {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth == 0 && strings.HasPrefix(arguments[i:], " | "):
			parts, from = append(parts, arguments[from:i]), i+len(" | ")
		}
	}
	return append(parts, arguments[from:])
}

// rows are how the document has the commands of a group.
func (g *Group) rows() string {
	var b strings.Builder
	for i := range g.Commands {
		c := &g.Commands[i]
		cells := []string{"", "`" + escaped(strings.Join(c.forms(), "`, or `")) + "`", escaped(c.Reply), escaped(c.Remarks), ""}
		b.WriteString(strings.ReplaceAll(strings.TrimSpace(strings.Join(cells, " | ")), "|  |", "| |") + "\n")
	}
	return b.String()
}

func TestNoWordIsDeclaredTwice(t *testing.T) {
	seen := make(map[string]bool)
	once := func(what, name string) {
		if name == "" || seen[what+name] {
			t.Errorf("the %s %q is declared twice, or a place is left out", what, name)
		}
		seen[what+name] = true
	}
	for _, g := range Commands {
		for _, c := range g.Commands {
			once("command", c.Name)
		}
	}
	for _, f := range QueueFigures {
		once("figure", f.Name)
	}
	for _, f := range PacketFields {
		once("field", f.Name)
	}
	for _, s := range PacketStates {
		once("state", s.Name)
	}
	for _, f := range ConsumerFields {
		once("column", f.Name)
	}
	for _, f := range ShareFields {
		once("share", f.Name)
	}
	for _, f := range ProducerFields {
		once("part", f.Name)
	}
}

// place finds the rows of the table with a head in a section of a document.
func place(document, section, head string) (from, to int) {
	for _, mark := range []string{"\n## " + section + "\n", "\n| " + head + " | ", "|---|\n"} {
		at := strings.Index(document[from:], mark)
		if at < 0 {
			return 0, 0
		}
		from += at + len(mark)
	}
	for to = from; strings.HasPrefix(document[to:], "|"); {
		to += strings.Index(document[to:], "\n") + 1
	}
	return from, to
}

// rowsOfFigures are how the document has the figures of a queue.
func rowsOfFigures() string {
	var b strings.Builder
	for _, f := range QueueFigures {
		of := map[Kind]string{Gauge: "now", Size: "now, in bytes", Total: "since the queue was made", Flag: "now: 1 or 0", Number: "now"}[f.Kind]
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, of, f.Says)
	}
	return b.String()
}

// rowsOfStates are how the document has the states of a packet.
func rowsOfStates() string {
	var b strings.Builder
	for _, s := range PacketStates {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.Name, s.WaitsFor, s.EndsBy)
	}
	return b.String()
}

// rowsOfFields are how the document has the fields of a packet or a consumer.
func rowsOfFields(fields []Field) string {
	var b strings.Builder
	for _, f := range fields {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Name, f.Says)
	}
	return b.String()
}

func TestTheTablesOfTheDocumentAreThoseOfTheWords(t *testing.T) {
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	hold := func(section, head, rows string) {
		from, to := place(text, section, head)
		if from == 0 {
			t.Fatalf("%s has no table of each %s in %q", document, head, section)
		}
		if text[from:to] != rows && !*update {
			t.Errorf("%s has other rows in the table of each %s in %q than the words: run make words", document, head, section)
		}
		text = text[:from] + rows + text[to:]
	}
	for i := range Commands {
		hold(Commands[i].Section, "command", Commands[i].rows())
	}
	hold("Work queue", "state", rowsOfStates())
	hold("Work queue", "field", rowsOfFields(PacketFields[:]))
	hold("Work queue", "column", rowsOfFields(ConsumerFields[:]))
	hold("Work queue", "entry", rowsOfFields(ShareFields[:]))
	hold("Work queue", "part", rowsOfFields(ProducerFields[:]))
	hold("Work queue", "figure", rowsOfFigures())
	if *update {
		if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
