package resp

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"testing"
)

//go:embed COMMANDS.md
var document string

// documented returns the commands that have a row, as the table of commands names them.
func documented(t *testing.T) (names []string) {
	t.Helper()
	table := newTable()
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z-]+)( [A-Z-]+)?").FindAllStringSubmatch(document, -1) {
		c := table[strings.ToLower(row[1])]
		if c == nil {
			t.Errorf("COMMANDS.md has a row for %s, which is no command", row[1])
			continue
		}
		sub := strings.ToLower(strings.TrimSpace(row[2]))
		switch {
		case c.sub != nil && sub != "" && c.sub[sub] == nil:
			t.Errorf("COMMANDS.md has a row for %s%s, which is no command", row[1], row[2])
		case c.sub != nil && sub != "":
			names = append(names, c.sub[sub].name)
		default:
			names = append(names, c.name)
		}
	}
	return names
}

func TestEachCommandHasOneRowInTheDocument(t *testing.T) {
	rows := documented(t)
	count := func(name string) (n int) {
		for _, row := range rows {
			if row == name {
				n++
			}
		}
		return n
	}
	for name, c := range newTable() {
		if n := count(name); c.run != nil && n != 1 {
			t.Errorf("COMMANDS.md has %d rows for %s", n, name)
		}
		for i := range c.subs {
			if n := count(c.subs[i].name); n != 1 {
				t.Errorf("COMMANDS.md has %d rows for %s", n, c.subs[i].name)
			}
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
	var all []*command
	for name, c := range newTable() {
		if c.name != name || name != strings.ToLower(name) || len(name) > maxName {
			t.Errorf("%q is not a name that is found", name)
		}
		all = append(all, c)
		for i := range c.subs {
			all = append(all, &c.subs[i])
		}
	}
	if len(all) < len(newTable()) {
		t.Fatal("two commands have one name")
	}
	for _, c := range all {
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
