package resp

import (
	"slices"
	"strings"
	"testing"
)

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

func TestEachCommandHasOneRowInTheDocument(t *testing.T) {
	table := newTable()
	rows := make(map[string]int)
	for _, row := range documentRows() {
		if c, _ := documented(table, row.forms[0]); c != nil {
			rows[c.name]++
		} else {
			t.Errorf("COMMANDS.md has a row for %s, which is no command", row.forms[0])
		}
	}
	for _, c := range all(table) {
		want := 1
		if c.run == nil {
			want = 0
		}
		if n := rows[c.name]; n != want {
			t.Errorf("COMMANDS.md has %d rows for %s", n, c.name)
		}
	}
}

func TestEachSettingHasARowWithItsDefault(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q lease 30000", "+OK\r\n")
	got := c.pairs("QGET", "q")
	_, table, _ := strings.Cut(document, "| setting | default | says |\n")
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
