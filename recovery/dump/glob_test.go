package dump

import (
	"strings"
	"testing"
)

func TestGlobsMatchWholeNames(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"a", "", false},
		{"jobs", "jobs", true},
		{"jobs", "jobs2", false},
		{"*", "", true},
		{"*", "a/b", true},
		{"a*c", "abbbc", true},
		{"a*c", "abbb", false},
		{"*a*b", "xaxaxb", true},
		{"*a*b", "xaxax", false},
		{"**", "x", true},
		{"?", "\xff", true},
		{"?", "é", true},
		{"?", "/", true},
		{"a/*", "a/b/c", true},
		{"a/*", "b/c", false},
		{"?", "", false},
		{"?", "ab", false},
		{"\xff*", "\xff\x00", true},
		{"[a-c]", "b", true},
		{"[a-c]", "d", false},
		{"[^a-c]", "b", false},
		{`[\]]`, "]", true},
		{`[\a-c]`, "b", true},
		{`\*`, "*", true},
		{`\*`, "x", false},
		{"x[0-9]*", "x7", true},
	} {
		if err := CheckPatterns([]string{c.pattern}); err != nil {
			t.Fatalf("%q: %v", c.pattern, err)
		}
		if got := Match([]string{c.pattern}, []byte(c.name)); got != c.want {
			t.Errorf("pattern %q and name %q: %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
}

func TestOnePatternWithoutEndIsEnoughToRefuseThemAll(t *testing.T) {
	if err := CheckPatterns([]string{"a*", `b\`, "c"}); err == nil || !strings.Contains(err.Error(), `"b\\"`) {
		t.Errorf("%v, want an error that names the pattern", err)
	}
	if err := CheckPatterns([]string{"a*", "[a-z]", ""}); err != nil {
		t.Error(err)
	}
}

func TestGlobsWithoutEndAreRefused(t *testing.T) {
	for _, pattern := range []string{"[", "[]", "[a", "[a-", "[a-]", "[^", `[\`, `a\`, "x[^]"} {
		if err := CheckPatterns([]string{pattern}); err == nil || !strings.Contains(err.Error(), "write") {
			t.Errorf("%q: got %v, want a sentence that says what to write", pattern, err)
		}
	}
}
