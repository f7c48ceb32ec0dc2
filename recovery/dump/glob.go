package dump

import (
	"fmt"
	"path"
	"strings"
)

// CheckPatterns refuses what Dump would refuse as Options.Queues: a pattern whose set or escape has
// no end. The error names it.
func CheckPatterns(patterns []string) error {
	for _, pattern := range patterns {
		if _, err := path.Match(flatten(pattern), ""); err != nil {
			return fmt.Errorf(`queue pattern %q: write \[ for a bracket and \\ for a backslash, and end a set with ]`, pattern)
		}
	}
	return nil
}

// Match reports whether one of the patterns (DUMP.md, section names) matches the whole name, or
// there are none.
func Match(patterns []string, name []byte) bool {
	for _, pattern := range patterns {
		if ok, err := path.Match(flatten(pattern), flatten(string(name))); ok && err == nil {
			return true
		}
	}
	return len(patterns) == 0
}

// flatten replaces slashes, at which path.Match would end a *.
func flatten(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
