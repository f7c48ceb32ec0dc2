package resp

import (
	"slices"
	"strings"
	"testing"
)

// written writes arguments back in the language of COMMANDS.md.
func written(all []argument) (words []string) {
	for _, a := range all {
		optional := slices.Contains(a.flags, "optional")
		if optional {
			words = append(words, "[")
		}
		if a.token != "" {
			words = append(words, a.token)
		}
		switch {
		case a.kind == "block":
			words = append(words, written(a.parts)...)
			if slices.Equal(a.flags, []string{"multiple"}) {
				words = append(append(append(words, "["), written(a.parts)...), "]", "…")
				continue
			}
		case a.kind == "oneof" && !slices.ContainsFunc(a.parts, func(p argument) bool { return p.kind != "pure-token" }):
			words = append(words, strings.Join(written(a.parts), "|"))
		case a.kind == "oneof":
			for i := range a.parts {
				if i > 0 {
					words = append(words, "|")
				}
				words = append(words, written(a.parts[i:i+1])...)
			}
		case a.kind != "pure-token":
			words = append(words, a.name)
		}
		again := slices.Contains(a.flags, "multiple")
		with := slices.Contains(a.flags, "multiple_token")
		if again && !with {
			words = append(words, "…")
		}
		if optional {
			words = append(words, "]")
		}
		if with {
			words = append(words, "…")
		}
	}
	return words
}

func TestArgumentsHoldAllOfTheSyntaxInTheDocument(t *testing.T) {
	table := newTable()
	read := readDocs(table)
	for _, row := range documentRows() {
		var want, name string
		for _, form := range row.forms {
			c, words := documented(table, form)
			if c == nil {
				t.Fatalf("COMMANDS.md has a row for %s, which is no command", form)
			}
			if want != "" {
				want += " | "
			}
			name, want = c.name, want+strings.Join(words, " ")
		}
		if got := strings.Join(written(read[name].arguments), " "); got != want {
			t.Errorf("%s has the arguments %s, and in COMMANDS.md %s", name, got, want)
		}
	}
}

// least is how many words arguments have at least, and exact tells whether there cannot be more.
func least(all []argument) (n int, exact bool) {
	exact = true
	for _, a := range all {
		words := 1
		switch {
		case a.kind == "block":
			var same bool
			words, same = least(a.parts)
			exact = exact && same
		case a.kind == "oneof":
			words, _ = least(a.parts[:1])
			for i := range a.parts {
				other, same := least(a.parts[i : i+1])
				exact = exact && same && other == words
				words = min(words, other)
			}
			words = max(words, 1) // one of them is there
		}
		if a.token != "" && a.kind != "pure-token" {
			words++
		}
		if slices.Contains(a.flags, "optional") {
			words = 0
		}
		n += words
		exact = exact && a.flags == nil
	}
	return n, exact
}

func TestArgumentsAgreeWithTheArity(t *testing.T) {
	table := newTable()
	read := readDocs(table)
	for _, c := range all(table) {
		d, ok := read[c.name]
		if c.run == nil {
			continue
		}
		n, exact := least(d.arguments)
		n += 1 + strings.Count(c.name, "|")
		if !exact || c.name == "quit" { // whose further words mean nothing
			n = -n
		}
		if c.subs != nil {
			n = -1 // those that it holds have arguments
		}
		if !ok || n != c.arity {
			t.Errorf("%s has an arity of %d, and by COMMANDS.md of %d", c.name, c.arity, n)
		}
	}
}

// places are the types of the words that a request has at least.
func places(all []argument) (kinds []string) {
	for _, a := range all {
		switch {
		case slices.Contains(a.flags, "optional"):
		case a.kind == "block":
			kinds = append(kinds, places(a.parts)...)
		case a.kind == "oneof":
			kinds = append(kinds, places(a.parts[:1])...)
		default:
			kinds = append(kinds, a.kind)
		}
	}
	return kinds
}

func TestArgumentsAreKeysWhereTheTableSaysSo(t *testing.T) {
	table := newTable()
	read := readDocs(table)
	for _, c := range all(table) {
		kinds := places(read[c.name].arguments)
		from := 1 + strings.Count(c.name, "|")
		for i := c.first; i > 0 && i <= max(c.first, c.last); i += c.step {
			if i-from >= len(kinds) || kinds[i-from] != "key" {
				t.Errorf("%s has a key at %d, and by COMMANDS.md %s", c.name, i, kinds)
			}
		}
		if c.flags&flagLocal != 0 && slices.Contains(kinds, "key") {
			t.Errorf("%s has no keys, and by COMMANDS.md %s", c.name, kinds)
		}
	}
}
