package resp

import (
	"strconv"
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
	steps := maxSteps
	return compileGlob([]byte(pattern)).match([]byte(text), &steps)
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

// The time is that of a few passes over the names: 40 of them took 17 s byte by byte.
func TestAPatternOfLettersCostsOnePassOverLongNames(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	name := strings.Repeat("a", 65_000)
	for i := range 40 {
		c.ask("HSET "+name+strconv.Itoa(i)+" "+name+" v", ":1\r\n")
	}
	pattern := "*" + strings.Repeat("a", 1000) + "b"
	c.ask("KEYS "+pattern, "*0\r\n")
	c.ask("SCAN 0 COUNT 100 MATCH "+pattern, "*2\r\n$1\r\n0\r\n*0\r\n")
	c.ask("HSCAN "+name+"0 0 MATCH "+pattern, "*2\r\n$1\r\n0\r\n*0\r\n")
	c.ask("QUEUES MATCH "+pattern, "*0\r\n")
}

// costly has so many steps on a name of 65,000 times a that one such name takes 3 million, and 4
// more than a command may take.
var costly = "*" + strings.Repeat("[ab]", 50) + "[c]*"

func TestAPatternThatIsTooCostlyIsRefused(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	name := strings.Repeat("a", 65_000)
	for i := range 4 {
		c.ask("LPUSH "+name+strconv.Itoa(i)+" v", ":1\r\n")
		c.ask("HSET h "+name+strconv.Itoa(i)+" v", ":1\r\n")
	}
	const refused = "-" + errCostly + "\r\n"
	c.ask("KEYS "+costly, refused)
	c.ask("QUEUES MATCH "+costly, refused)
	for _, scan := range [][]string{{"SCAN"}, {"HSCAN", "h"}} {
		if cursor := c.scanOnce(scan, "0", costly); cursor == "0" {
			t.Errorf("%s reached the end in one call", scan[0])
		} else if cursor = c.scanOnce(scan, cursor, costly); cursor != "0" {
			t.Errorf("%s did not reach the end in two calls", scan[0])
		}
	}
	one := "*" + strings.Repeat("[ab]", 200) + "[c]*" // 13 million
	c.ask("SCAN 0 MATCH "+one, refused)

	listener := d.dial()
	listener.ask("PSUBSCRIBE "+one, "*3\r\n$10\r\npsubscribe\r\n$"+strconv.Itoa(len(one))+"\r\n"+one+"\r\n:1\r\n")
	listener.ask("SUBSCRIBE "+name, "*3\r\n$9\r\nsubscribe\r\n$65000\r\n"+name+"\r\n:2\r\n")
	c.ask("PUBLISH "+name+" x", refused)
	c.ask("PUBSUB CHANNELS "+one, refused)
	c.ask("PUBLISH "+strings.Repeat("a", 65_536)+" x", "-"+errChannel+"\r\n")
	listener.ask("SUBSCRIBE "+strings.Repeat("a", 65_536), "-"+errChannel+"\r\n")
}

// scanOnce asks for many names and returns the cursor.
func (c *conn) scanOnce(command []string, cursor, pattern string) string {
	c.t.Helper()
	c.line(append(command, cursor, "COUNT", "100", "MATCH", pattern)...)
	c.readLine() // the length of the cursor
	cursor = c.readLine()
	c.want("*0\r\n")
	return cursor
}

func TestConfigAndCommandPatternsAreBounded(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	long := strings.Repeat("*", maxPattern+1)
	c.ask("CONFIG GET "+long, "-"+errPattern+"\r\n")
	c.ask("COMMAND LIST FILTERBY PATTERN "+long, "-"+errPattern+"\r\n")
	c.ask("PUBSUB CHANNELS "+long, "-"+errPattern+"\r\n")
	c.ask("CONFIG GET"+strings.Repeat(" x", 10_001), "-"+errCostly+"\r\n")
	c.ask("CONFIG GET APP*[M-O]L?", "*2\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n")
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
