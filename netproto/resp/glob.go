package resp

// maxPattern is the longest pattern, in bytes, that a command takes: to match one costs up to the
// product of its length and the name's.
const maxPattern = 1024

const errPattern = "ERR the pattern is too long: expected at most 1024 bytes"

// match says whether text matches a pattern, in which * stands for any bytes, ? for one, [a-z] for
// one of a class and [^a-z] for one that is not in it. A backslash takes the next byte as it is.
// The time is at most the product of both lengths.
func match(pattern, text []byte) bool { return glob(pattern, text, false) }

// matchFold is match that takes upper and lower case for the same.
func matchFold(pattern, text []byte) bool { return glob(pattern, text, true) }

func glob(pattern, text []byte, fold bool) bool {
	// The latest star, if any, and the text from which the pattern behind it is tried next. A star
	// takes as little as it can; an earlier one need never take more.
	star, retry := -1, 0
	at, i := 0, 0
	for i < len(text) || at < len(pattern) {
		if at < len(pattern) {
			if pattern[at] == '*' {
				star, retry = at, i
				at++
				continue
			}
			if i < len(text) {
				if n, ok := one(pattern[at:], text[i], fold); ok {
					at, i = at+n, i+1
					continue
				}
			}
		}
		if star < 0 || retry >= len(text) {
			return false
		}
		retry++
		at, i = star+1, retry
	}
	return true
}

// one matches one byte. n is how much of the pattern that takes.
func one(pattern []byte, c byte, fold bool) (n int, ok bool) {
	if fold {
		c = lower(c)
	}
	switch {
	case pattern[0] == '?':
		return 1, true
	case pattern[0] == '[':
		return class(pattern, c, fold)
	case pattern[0] == '\\' && len(pattern) > 1:
		return 2, folded(pattern[1], fold) == c
	}
	return 1, folded(pattern[0], fold) == c
}

// class matches one byte with what stands between brackets. A missing bracket is taken to be at the
// end of the pattern.
func class(pattern []byte, c byte, fold bool) (n int, ok bool) {
	n = 1
	not := n < len(pattern) && pattern[n] == '^'
	if not {
		n++
	}
	for n < len(pattern) && pattern[n] != ']' {
		switch {
		case pattern[n] == '\\' && n+1 < len(pattern):
			n++
			ok = ok || folded(pattern[n], fold) == c
		case n+2 < len(pattern) && pattern[n+1] == '-':
			from, to := folded(pattern[n], fold), folded(pattern[n+2], fold)
			ok = ok || min(from, to) <= c && c <= max(from, to)
			n += 2
		default:
			ok = ok || folded(pattern[n], fold) == c
		}
		n++
	}
	return min(n+1, len(pattern)), ok != not
}

func folded(c byte, fold bool) byte {
	if fold {
		return lower(c)
	}
	return c
}
