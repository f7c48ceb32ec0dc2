package resp

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// document is COMMANDS.md.
func document(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("COMMANDS.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// all are the commands of a table, and those that these hold.
func all(table map[string]*command) (all []*command) {
	for _, c := range table {
		all = append(all, c)
		for i := range c.subs {
			all = append(all, &c.subs[i])
		}
	}
	return all
}

func TestTheCommandsAreThoseOfTheWords(t *testing.T) {
	missing := maps.Clone(allDocs())
	for _, c := range all(newTable()) {
		if _, ok := missing[c.name]; ok != (c.run != nil) {
			t.Errorf("the words have %s: %v", c.name, ok)
		}
		delete(missing, c.name)
	}
	for name := range missing {
		t.Errorf("the words have %s, which is no command", name)
	}
}

func TestEachSettingHasARowWithItsDefault(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q lease 30000", "+OK\r\n")
	got := c.pairs("QGET", "q")
	_, table, _ := strings.Cut(document(t), "| setting | default | says |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(row, " | ")
		defaults := strings.Split(cells[1], ", ")
		for i, name := range strings.Split(strings.Trim(cells[0], "| "), ", ") {
			name = strings.Trim(name, "`")
			if value, ok := got[name]; !ok || value != defaults[i] && (defaults[i] != "empty" || strings.Trim(value, "[]") != "") {
				t.Errorf("COMMANDS.md has the default %s of %s: it is %q", defaults[i], name, value)
			}
			delete(got, name)
		}
	}
	if len(got) > 0 {
		t.Errorf("COMMANDS.md has no row for %v", got)
	}
}

func TestTheTableOfCommandsIsSound(t *testing.T) {
	table := newTable()
	for name, c := range table {
		if c.name != name || name != strings.ToLower(name) || len(name) > maxName {
			t.Errorf("%q is not a name that is found", name)
		}
	}
	for _, c := range all(table) {
		kinds := []flags{flagWrite, flagRead, flagLocal}
		n := len(slices.DeleteFunc(kinds, func(f flags) bool { return c.flags&f == 0 }))
		switch {
		case c.arity == 0 || c.run == nil && c.subs == nil:
			t.Errorf("%s cannot be called", c.name)
		case n > 1:
			t.Errorf("%s is more than one of a write, a read, and local", c.name)
		case c.first > 0 && c.step < 1:
			t.Errorf("%s: the places of its keys are not told", c.name)
		case c.first > 0 && c.arity > 0 && c.last >= c.arity:
			t.Errorf("%s: its last key is beyond its arguments", c.name)
		case c.flags&flagAdds != 0 && c.flags&flagWrite == 0:
			t.Errorf("%s stores more but does not write", c.name)
		}
	}
}
