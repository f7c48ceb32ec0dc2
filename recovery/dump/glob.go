package dump

import (
	"errors"
	"fmt"
)

// glob is a pattern for the names of queues. Names are bytes, and so are the patterns: a byte that
// is not ASCII stands for itself. `*` is any number of bytes, also none, also slashes; `?` is one
// byte; `[a-z_]` is one byte of a set and `[!a-z]` or `[^a-z]` one outside it; `\` takes the byte
// after it as it is. It matches whole names.
type glob string

// parseGlob refuses a pattern whose set or escape has no end.
func parseGlob(pattern string) (glob, error) {
	for rest := pattern; rest != ""; {
		_, after, err := globStep(rest, 0)
		if err != nil {
			return "", fmt.Errorf("queue pattern %q: %w", pattern, err)
		}
		rest = after
	}
	return glob(pattern), nil
}

// CheckPatterns refuses what Dump would refuse as Options.Queues; the error names the pattern.
func CheckPatterns(patterns []string) error {
	for _, pattern := range patterns {
		if _, err := parseGlob(pattern); err != nil {
			return err
		}
	}
	return nil
}

// match goes back to the last star only: what an earlier one could take more of, the last can.
func (g glob) match(name []byte) bool {
	rest, at := string(g), 0
	star, starAt := "", -1
	for rest != "" || at < len(name) {
		if rest != "" && rest[0] == '*' {
			star, starAt = rest[1:], at
			rest = star
			continue
		}
		if rest != "" && at < len(name) {
			if ok, after, err := globStep(rest, name[at]); ok && err == nil {
				rest = after
				at++
				continue
			}
		}
		if starAt < 0 || starAt == len(name) {
			return false
		}
		starAt++
		rest, at = star, starAt
	}
	return true
}

// globStep holds one byte against the first element of a pattern and returns what follows it.
func globStep(pattern string, c byte) (ok bool, after string, err error) {
	switch pattern[0] {
	case '*', '?':
		return true, pattern[1:], nil
	case '\\':
		if len(pattern) == 1 {
			return false, "", errors.New(`ends in a single \: write \\ for a backslash`)
		}
		return pattern[1] == c, pattern[2:], nil
	case '[':
		return globSet(pattern[1:], c)
	}
	return pattern[0] == c, pattern[1:], nil
}

func globSet(pattern string, c byte) (ok bool, after string, err error) {
	negated := pattern != "" && (pattern[0] == '!' || pattern[0] == '^')
	if negated {
		pattern = pattern[1:]
	}
	for first := true; ; first = false {
		if pattern != "" && pattern[0] == ']' && !first {
			return ok != negated, pattern[1:], nil
		}
		low, rest, err := globMember(pattern)
		if err != nil {
			return false, "", err
		}
		high := low
		if len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			if high, rest, err = globMember(rest[1:]); err != nil {
				return false, "", err
			}
		}
		ok = ok || low <= c && c <= high
		pattern = rest
	}
}

func globMember(pattern string) (c byte, rest string, err error) {
	if pattern != "" && pattern[0] == '\\' {
		pattern = pattern[1:]
	}
	if pattern == "" {
		return 0, "", errors.New(`a set has no end: write ] after it, or \[ for a bracket`)
	}
	return pattern[0], pattern[1:], nil
}
