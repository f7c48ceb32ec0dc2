package terminal

import (
	"fmt"
	"strings"
)

// Nearest asks whether one of some words was meant, "" if none is like what was written.
func Nearest(written string, words []string) string {
	best, at := "", 3
	for _, word := range words {
		d := distance(written, word)
		if len(written) > 1 && strings.HasPrefix(word, written) {
			d = 1
		}
		if d < at && (d == 1 || 3*d <= len(word)) {
			best, at = word, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", best)
}

// distance is how many bytes to change, add or leave out make one word of another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0] // and left of what is next
		row[0] = i + 1
		for j := range len(b) {
			cost := above
			if a[i] != b[j] {
				cost = 1 + min(above, row[j], row[j+1])
			}
			above, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
