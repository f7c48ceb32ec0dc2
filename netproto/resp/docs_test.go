package resp

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

// written writes arguments back in the language of words.Command.
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

func TestArgumentsHoldAllOfTheSyntaxInTheWords(t *testing.T) {
	read := allDocs()
	for _, g := range words.Commands {
		for _, c := range g.Commands {
			want := strings.Join(strings.Fields(clauses.ReplaceAllString(marks.Replace(c.Syntax()), "$1 | $2")), " ")
			if got := strings.Join(written(read[commandName(c.Name)].arguments), " "); got != want {
				t.Errorf("%s has the arguments %s, and in the words %s", c.Name, got, want)
			}
		}
	}
}
