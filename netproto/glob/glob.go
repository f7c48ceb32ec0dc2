// Package glob matches names with the patterns of Redis.
package glob

import (
	"bytes"
	"errors"
	"slices"
)

// MaxLength is the longest pattern in bytes.
const MaxLength = 1024

// ErrTooLong says that a pattern has more than MaxLength bytes.
var ErrTooLong = errors.New("the pattern is too long: expected at most 1024 bytes")

// Pattern is a pattern, compiled once for all names that it is tried on. In it * stands for any
// bytes, ? for one, [a-z] for one of a class and [^a-z] for one that is not in it. A backslash
// takes the next byte as it is.
type Pattern struct {
	text  string // as it was written
	parts []part // what stands between stars: the first begins the text, the last ends it
	width int    // bytes that all parts take
}

// part is a sequence of atoms, each of which takes a byte.
type part struct {
	atoms []atom
	run   []byte // the longest run of literal bytes, nil if there is none
	skip  int    // atoms before it
}

// atom is a literal byte, or one of a class.
type atom struct {
	literal byte
	class   *class // nil: the literal
}

// class is a set of bytes.
type class [4]uint64

func (c *class) has(b byte) bool { return c[b>>6]&(1<<(b&63)) != 0 }

var anyByte = &class{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}

// Compile compiles a pattern, which it does not keep. ErrTooLong if it is too long; any other is
// one.
func Compile(pattern []byte) (*Pattern, error) {
	if len(pattern) > MaxLength {
		return nil, ErrTooLong
	}
	g := &Pattern{text: string(pattern), parts: make([]part, 1)}
	for len(pattern) > 0 {
		c := pattern[0]
		pattern = pattern[1:]
		a := atom{literal: c}
		switch {
		case c == '*':
			g.parts = append(g.parts, part{})
			continue
		case c == '?':
			a.class = anyByte
		case c == '[':
			a.class, pattern = parseClass(pattern)
		case c == '\\' && len(pattern) > 0:
			a.literal, pattern = pattern[0], pattern[1:]
		}
		p := &g.parts[len(g.parts)-1]
		p.atoms = append(p.atoms, a)
		g.width++
	}
	for i := range g.parts {
		g.parts[i].findRun()
	}
	return g, nil
}

// String is the pattern as it was written.
func (g *Pattern) String() string { return g.text }

func (p *part) findRun() {
	var run []byte
	for i, a := range p.atoms {
		if a.class != nil {
			run = nil
		} else if run = append(run, a.literal); len(run) > len(p.run) {
			p.run, p.skip = run, i+1-len(run)
		}
	}
}

// parseClass reads a class behind its opening bracket. A missing one at its end is taken to be at
// the end of the pattern.
func parseClass(pattern []byte) (set *class, rest []byte) {
	set = &class{}
	not := len(pattern) > 0 && pattern[0] == '^'
	if not {
		pattern = pattern[1:]
	}
	for len(pattern) > 0 && pattern[0] != ']' {
		n := 1
		from, to := pattern[0], pattern[0]
		switch {
		case pattern[0] == '\\' && len(pattern) > 1:
			from, to, n = pattern[1], pattern[1], 2
		case len(pattern) > 2 && pattern[1] == '-':
			to, n = pattern[2], 3
		}
		for b := int(min(from, to)); b <= int(max(from, to)); b++ {
			set[b>>6] |= 1 << (b & 63)
		}
		pattern = pattern[n:]
	}
	for i := range set {
		if not {
			set[i] = ^set[i]
		}
	}
	return set, pattern[min(1, len(pattern)):]
}

// One pass over a text costs no steps, but for what is long: a step for so many bytes of that.
const (
	shortText    = 256
	bytesPerStep = 8
)

// Match says whether the text matches the pattern. It takes what it tries beyond one pass over the
// text off steps; once they are below 0 nothing matches.
func (g *Pattern) Match(text []byte, steps *int) bool {
	first, last := &g.parts[0], &g.parts[len(g.parts)-1]
	free, end := 0, len(text)-len(last.atoms) // both take one pass
	switch {
	case *steps < 0 || len(text) < g.width || !first.fits(text, &free):
		return false
	case first == last:
		return len(text) == g.width
	case !last.fits(text[end:], &free):
		return false
	}
	text = text[len(first.atoms):end]
	if len(g.parts) > 2 {
		*steps -= max(0, len(text)-shortText) / bytesPerStep
	}
	for i := 1; i < len(g.parts)-1; i++ {
		// The part is taken where it is found first: what follows has the most bytes left then.
		at := g.parts[i].find(text, steps)
		if at < 0 {
			return false
		}
		text = text[at+len(g.parts[i].atoms):]
	}
	return true
}

// Covers says that g matches all that other matches. It knows this of the same pattern, and of
// one that ends with its only star: false may be wrong, true never is.
func (g *Pattern) Covers(other *Pattern) bool {
	if g.text == other.text {
		return true
	}
	prefix, begins := g.parts[0].atoms, other.parts[0].atoms
	isPrefix := len(g.parts) == 2 && len(g.parts[1].atoms) == 0
	return isPrefix && len(begins) >= len(prefix) && slices.Equal(begins[:len(prefix)], prefix)
}

// find returns where the part is found first in the text, -1 if nowhere.
func (p *part) find(text []byte, steps *int) int {
	for at := 0; at+len(p.atoms) <= len(text) && *steps >= 0; at++ {
		next := bytes.Index(text[at+p.skip:], p.run)
		if at += next; next < 0 || at+len(p.atoms) > len(text) {
			return -1
		}
		if len(p.run) == len(p.atoms) || p.fits(text[at:], steps) {
			return at
		}
	}
	return -1
}

// fits says whether the part begins the text, which is not shorter.
func (p *part) fits(text []byte, steps *int) bool {
	for i, a := range p.atoms {
		*steps--
		if a.class == nil && a.literal != text[i] || a.class != nil && !a.class.has(text[i]) {
			return false
		}
	}
	return true
}
