package glob

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true},
		{"*", "abc", true},
		{"", "", true},
		{"", "a", false},
		{"a", "", false},
		{"a*c", "abbc", true},
		{"a*c", "abbcd", false},
		{"a*b*c", "aXbYbZc", true},
		{"*a*b", "aab", true},
		{"a**b", "ab", true},
		{"?", "a", true},
		{"?", "", false},
		{"a?c", "abc", true},
		{"h[ae]llo", "hallo", true},
		{"h[ae]llo", "hillo", false},
		{"h[^e]llo", "hallo", true},
		{"h[^e]llo", "hello", false},
		{"[a-c]x", "bx", true},
		{"[c-a]x", "bx", true},
		{"[a-c]x", "dx", false},
		{`[\]]`, "]", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`a\`, `a\`, true},
		{"[a", "a", true},
		{"[", "a", false},
		{"A", "a", false},
		{"*\x00", "\x00", true},
		{"a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
	} {
		if got := matches(c.pattern, c.text); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.text, got)
		}
	}
}

// matches compiles a pattern and tries it on a text.
func matches(pattern, text string) bool {
	steps := 10_000_000
	return compile(pattern).Match([]byte(text), &steps)
}

func compile(pattern string) *Pattern {
	g, err := Compile([]byte(pattern))
	if err != nil {
		panic(err)
	}
	return g
}

// The same patterns match the same texts as for redis-server, which goes over both byte by byte.
func TestACompiledPatternMatchesWhatRedisMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.RuneFrom([]rune(`aab-bc*?[]^\`)), 0, 12, -1).Draw(t, "pattern")
		text := rapid.StringOfN(rapid.RuneFrom([]rune(`aabbc-]\^`)), 0, 12, -1).Draw(t, "text")
		if got, want := matches(pattern, text), slowMatch([]byte(pattern), []byte(text)); got != want {
			t.Fatalf("match(%q, %q) = %v", pattern, text, got)
		}
	})
}

// slowMatch goes over pattern and text byte by byte, and back to the last star.
func slowMatch(pattern, text []byte) bool {
	for len(pattern) > 0 {
		if pattern[0] == '*' {
			return slowMatch(pattern[1:], text) || len(text) > 0 && slowMatch(pattern, text[1:])
		}
		if len(text) == 0 {
			return false
		}
		n, ok := slowByte(pattern, text[0])
		if !ok {
			return false
		}
		pattern, text = pattern[n:], text[1:]
	}
	return len(text) == 0
}

// slowByte matches one byte with n bytes of the pattern.
func slowByte(pattern []byte, c byte) (n int, ok bool) {
	switch {
	case pattern[0] == '?':
		return 1, true
	case pattern[0] == '\\' && len(pattern) > 1:
		return 2, pattern[1] == c
	case pattern[0] != '[':
		return 1, pattern[0] == c
	}
	n = 1
	not := n < len(pattern) && pattern[n] == '^'
	if not {
		n++
	}
	for n < len(pattern) && pattern[n] != ']' {
		switch {
		case pattern[n] == '\\' && n+1 < len(pattern):
			n++
			ok = ok || pattern[n] == c
		case n+2 < len(pattern) && pattern[n+1] == '-':
			ok = ok || min(pattern[n], pattern[n+2]) <= c && c <= max(pattern[n], pattern[n+2])
			n += 2
		default:
			ok = ok || pattern[n] == c
		}
		n++
	}
	return min(n+1, len(pattern)), ok != not
}

func TestAPatternThatIsTooLongIsNotCompiled(t *testing.T) {
	if _, err := Compile([]byte(strings.Repeat("*", MaxLength))); err != nil {
		t.Errorf("the longest pattern: %v", err)
	}
	if _, err := Compile([]byte(strings.Repeat("*", MaxLength+1))); err != ErrTooLong {
		t.Errorf("a longer one: %v", err)
	}
}

func TestNothingMatchesOnceTheStepsAreUsedUp(t *testing.T) {
	text := []byte(strings.Repeat("a", 1000) + "b")
	for _, c := range []struct {
		steps int
		want  bool
	}{{10, false}, {10_000, true}} {
		if steps := c.steps; compile("*[ab][ab][b]*").Match(text, &steps) != c.want {
			t.Errorf("with %d steps: %v", c.steps, !c.want)
		}
	}
}

func TestAPatternCoversWhatBeginsLikeIt(t *testing.T) {
	for _, c := range []struct {
		pattern, other string
		want           bool
	}{
		{"*", "", true},
		{"*", "a*", true},
		{"*", "[a-z]?*b", true},
		{"mail.*", "mail.*", true},
		{"mail.*", "mail.x.*", true},
		{"mail.*", "mail.?", true},
		{"mail.*", "mail.", true},
		{"mail.*", "mail*", false},
		{"mail.*", "mail?*", false},
		{"mail.*", "*", false},
		{"mail.*", "m[a]il.x", false},
		{`\**`, `\*x`, true},
		{`\**`, `*x`, false},
		{"a?", "a?", true},
		{"a?", "a*", false},
		{"a?", "ab", false},
		{"a*b", "a*b", true},
		{"a*b", "a*bb", false},
	} {
		if got := compile(c.pattern).Covers(compile(c.other)); got != c.want {
			t.Errorf("%q covers %q: %v", c.pattern, c.other, got)
		}
	}
}

func TestWhatIsCoveredMatchesNothingElse(t *testing.T) {
	draw := rapid.StringOfN(rapid.RuneFrom([]rune(`aab-*?[]^\`)), 0, 5, -1)
	rapid.Check(t, func(t *rapid.T) {
		g, other := compile(draw.Draw(t, "pattern")), compile(draw.Draw(t, "other"))
		text := rapid.StringOfN(rapid.RuneFrom([]rune(`aab-]^\`)), 0, 6, -1).Draw(t, "text")
		steps := 10_000
		if g.Covers(other) && other.Match([]byte(text), &steps) && !g.Match([]byte(text), &steps) {
			t.Fatalf("%q matches %q, which %q does not", other, text, g)
		}
	})
}
