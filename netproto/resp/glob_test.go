package resp

import (
	"strings"
	"testing"
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
		if got := match([]byte(c.pattern), []byte(c.text)); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.text, got)
		}
	}
	if !matchFold([]byte("APP*[D-F]"), []byte("appEnd")) || !matchFold([]byte("app*"), []byte("APPENDONLY")) {
		t.Error("case makes a difference to matchFold")
	}
}

func TestALongPatternIsRefused(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	for _, command := range []string{"KEYS ", "SCAN 0 MATCH ", "HSCAN h 0 MATCH ", "PSUBSCRIBE "} {
		c.ask("HSET h f v", ":1\r\n")
		c.ask(command+strings.Repeat("*", maxPattern+1), "-"+errPattern+"\r\n")
		c.ask("DEL h", ":1\r\n")
	}
	c.ask("KEYS "+strings.Repeat("*", maxPattern), "*0\r\n")
}
