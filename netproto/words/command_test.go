package words

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of the documents anew")

// document explains the words to users.
const document = "../resp/COMMANDS.md"

// escaped is a text in a cell of a table.
func escaped(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// rows are how the document has the commands of a group.
func (g *Group) rows() string {
	var b strings.Builder
	for i := range g.Commands {
		c := &g.Commands[i]
		cells := []string{"", "`" + escaped(strings.Join(c.Forms(), "`, or `")) + "`", escaped(c.Reply), escaped(c.Remarks), ""}
		b.WriteString(strings.ReplaceAll(strings.TrimSpace(strings.Join(cells, " | ")), "|  |", "| |") + "\n")
	}
	return b.String()
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

func TestTheDocumentHasTheCommandsAsTheyAreDeclared(t *testing.T) {
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for i := range Commands {
		g := &Commands[i]
		from, to := place(text, g.Section, "command")
		if from == 0 {
			t.Fatalf("%s has no table of the commands of %q", document, g.Section)
		}
		if text[from:to] != g.rows() && !*update {
			t.Errorf("%s has in %q other commands than are declared: run make words", document, g.Section)
		}
		text = text[:from] + g.rows() + text[to:]
	}
	if *update {
		if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
