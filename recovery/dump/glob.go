package dump

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// globs are patterns for the names of queues (DUMP.md, section queues). Names and patterns are
// bytes; here each byte is a character of its own. path.Match does not do: its * ends at a slash.
type globs []*regexp.Regexp

// parseGlobs refuses a pattern whose set or escape has no end.
func parseGlobs(patterns []string) (globs, error) {
	var g globs
	for _, pattern := range patterns {
		text, err := globText(pattern)
		if err != nil {
			return nil, fmt.Errorf("queue pattern %q: %w", pattern, err)
		}
		compiled, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("queue pattern %q: write the ends of a range in order: %w", pattern, err)
		}
		g = append(g, compiled)
	}
	return g, nil
}

// CheckPatterns refuses what Dump would refuse as Options.Queues. The error names the pattern.
func CheckPatterns(patterns []string) error {
	_, err := parseGlobs(patterns)
	return err
}

// match reports whether one of the patterns matches the whole name, or there are none.
func (g globs) match(name []byte) bool {
	characters := make([]rune, len(name))
	for i, c := range name {
		characters[i] = rune(c)
	}
	for _, pattern := range g {
		if pattern.MatchString(string(characters)) {
			return true
		}
	}
	return len(g) == 0
}

// globText translates a pattern into a regular expression.
func globText(pattern string) (string, error) {
	var text strings.Builder
	text.WriteString(`(?s)\A`)
	for rest := pattern; rest != ""; {
		c := rest[0]
		rest = rest[1:]
		switch c {
		case '*':
			text.WriteString(".*")
			continue
		case '?':
			text.WriteString(".")
			continue
		case '[':
			set, after, err := globSet(rest)
			if err != nil {
				return "", err
			}
			text.WriteString(set)
			rest = after
			continue
		case '\\':
			if rest == "" {
				return "", errors.New(`it ends in a single \: write \\ for a backslash`)
			}
			c, rest = rest[0], rest[1:]
		}
		fmt.Fprintf(&text, `\x%02x`, c)
	}
	return text.String() + `\z`, nil
}

// globSet translates what follows a bracket, and returns what follows the set.
func globSet(rest string) (set, after string, err error) {
	set = "["
	if rest != "" && (rest[0] == '!' || rest[0] == '^') {
		set, rest = "[^", rest[1:]
	}
	for first := true; rest != ""; first = false {
		switch c := rest[0]; {
		case c == ']' && !first:
			return set + "]", rest[1:], nil
		case c == '-' && !first && len(rest) > 1 && rest[1] != ']':
			set += "-"
			rest = rest[1:]
			continue
		case c == '\\':
			rest = rest[1:]
		}
		if rest != "" {
			set += fmt.Sprintf(`\x%02x`, rest[0])
			rest = rest[1:]
		}
	}
	return "", "", errors.New(`a set has no end: write ] after it, or \[ for a bracket`)
}
