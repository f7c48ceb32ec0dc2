package resp

import "bytes"

const (
	// maxPattern is the longest pattern, in bytes, that a command takes.
	maxPattern = 1024
	// maxSteps is how many atoms of patterns a request tries, a transaction too, beyond one pass over
	// each name: some 20 ms.
	maxSteps = 10_000_000

	errPattern = "ERR the pattern is too long: expected at most 1024 bytes"
	errCostly  = "ERR pattern too costly: its ? and [] behind a * were tried 10000000 times; use fewer of them, or letters"
)

// glob is a pattern, compiled once for all names that it is tried on. In it * stands for any bytes,
// ? for one, [a-z] for one of a class and [^a-z] for one that is not in it. A backslash takes the
// next byte as it is.
type glob struct {
	parts []part // what stands between stars: the first begins the text, the last ends it
	width int    // bytes that all parts take
}

// part is a sequence of atoms. It takes a fixed number of bytes.
type part struct {
	atoms []atom
	width int
	run   []byte // the longest run of the atoms, nil if there is none
	skip  int    // bytes of the part before that run
}

// atom is a run of bytes as they are, or one byte of a class.
type atom struct {
	run   []byte
	class *class // nil: a run
}

// class is a set of bytes.
type class [4]uint64

func (c *class) has(b byte) bool { return c[b>>6]&(1<<(b&63)) != 0 }

func (c *class) add(from, to byte) {
	for b := int(min(from, to)); b <= int(max(from, to)); b++ {
		c[b>>6] |= 1 << (b & 63)
	}
}

var anyByte = &class{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}

// compileGlob compiles a pattern, which it does not keep.
func compileGlob(pattern []byte) (*glob, error) {
	if len(pattern) > maxPattern {
		return nil, failure(errPattern)
	}
	g := &glob{}
	var p part
	var run []byte
	endRun := func() {
		if len(run) > len(p.run) {
			p.run, p.skip = run, p.width
		}
		if len(run) > 0 {
			p.atoms = append(p.atoms, atom{run: run})
			p.width += len(run)
			run = nil
		}
	}
	endPart := func() {
		endRun()
		g.parts = append(g.parts, p)
		g.width += p.width
		p = part{}
	}
	for len(pattern) > 0 {
		c := pattern[0]
		pattern = pattern[1:]
		switch {
		case c == '*':
			endPart()
		case c == '?', c == '[':
			endRun()
			set := anyByte
			if c == '[' {
				set, pattern = parseClass(pattern)
			}
			p.atoms = append(p.atoms, atom{class: set})
			p.width++
		case c == '\\' && len(pattern) > 0:
			run, pattern = append(run, pattern[0]), pattern[1:]
		default:
			run = append(run, c)
		}
	}
	endPart()
	return g, nil
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
		switch {
		case pattern[0] == '\\' && len(pattern) > 1:
			set.add(pattern[1], pattern[1])
			n = 2
		case len(pattern) > 2 && pattern[1] == '-':
			set.add(pattern[0], pattern[2])
			n = 3
		default:
			set.add(pattern[0], pattern[0])
		}
		pattern = pattern[n:]
	}
	if not {
		for i := range set {
			set[i] = ^set[i]
		}
	}
	return set, pattern[min(1, len(pattern)):]
}

// match says whether the text matches the pattern. It takes what it tries beyond one pass over the
// text off steps; once they are below 0 nothing matches.
func (g *glob) match(text []byte, steps *int) bool {
	first, last := &g.parts[0], &g.parts[len(g.parts)-1]
	free := 0 // both take one pass
	switch {
	case *steps < 0 || len(text) < g.width || !first.fits(text, &free):
		return false
	case first == last:
		return len(text) == g.width
	case !last.fits(text[len(text)-last.width:], &free):
		return false
	}
	text = text[first.width : len(text)-last.width]
	for i := 1; i < len(g.parts)-1; i++ {
		// The part is taken where it is found first: what follows has the most bytes left then.
		at := g.parts[i].find(text, steps)
		if at < 0 {
			return false
		}
		text = text[at+g.parts[i].width:]
	}
	return true
}

// find returns where the part is found first in the text, -1 if nowhere.
func (p *part) find(text []byte, steps *int) int {
	for at := 0; at+p.width <= len(text) && *steps >= 0; at++ {
		if p.run != nil {
			next := bytes.Index(text[at+p.skip:], p.run)
			if at += next; next < 0 || at+p.width > len(text) {
				return -1
			}
		}
		if len(p.run) == p.width || p.fits(text[at:], steps) {
			return at
		}
	}
	return -1
}

// fits says whether the part begins the text, which is not shorter.
func (p *part) fits(text []byte, steps *int) bool {
	for i := range p.atoms {
		*steps--
		if a := &p.atoms[i]; a.class == nil {
			if *steps -= len(a.run) / 16; !bytes.Equal(text[:len(a.run)], a.run) {
				return false
			}
			text = text[len(a.run):]
		} else {
			if !a.class.has(text[0]) {
				return false
			}
			text = text[1:]
		}
	}
	return true
}
