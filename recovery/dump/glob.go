package dump

import (
	"fmt"
	"path"
	"strings"
)

// globs are patterns for the names of queues (DUMP.md, section Queues).
type globs []string

// parseGlobs refuses a pattern whose set or escape has no end.
func parseGlobs(patterns []string) (globs, error) {
	var g globs
	for _, pattern := range patterns {
		flat := flatten(pattern)
		if _, err := path.Match(flat, ""); err != nil {
			return nil, fmt.Errorf(`queue pattern %q: write \[ for a bracket and \\ for a backslash, and end a set with ]`, pattern)
		}
		g = append(g, flat)
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
	flat := flatten(string(name))
	for _, pattern := range g {
		if ok, err := path.Match(pattern, flat); ok && err == nil {
			return true
		}
	}
	return len(g) == 0
}

// flatten replaces slashes, at which path.Match would end a *.
func flatten(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
