package crash

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
)

// tags are those of a task; one that is empty is not there.
type tags struct{ class, size string }

// classes are the values of class, in the order that the queues declare. That of bytes is another.
func classes() []string { return []string{"low", "mid", "high"} }

// randomTags are compared as the queue declares, as integers, or do not match at all.
func randomTags(rng *rand.Rand) (t tags) {
	if rng.IntN(2) == 0 {
		t.class = classes()[rng.IntN(3)]
	}
	if rng.IntN(2) == 0 {
		t.size = strconv.Itoa(rng.IntN(20))
	}
	return t
}

// args are the options of a push.
func (t tags) args() (args []string) {
	if t.class != "" {
		args = append(args, "TAG", "class", t.class)
	}
	if t.size != "" {
		args = append(args, "TAG", "size", t.size)
	}
	return args
}

// shownTags reads the tags of a packet.
func shownTags(v any) (t tags) {
	fields := pairs(v)
	t.class, _ = fields["class"].(string)
	t.size, _ = fields["size"].(string)
	return t
}

// term is one FILTER of a claim.
type term struct{ tag, op, value string }

// filter is what a claim asks for: one term matches, or all. Without a term all tasks do.
type filter struct {
	terms []term
	any   bool
}

// ofClass matches what has a class.
func ofClass() filter { return filter{terms: []term{{"class", "ge", classes()[0]}}} }

// randomFilter has a term in half of all cases, and seldom two.
func randomFilter(rng *rand.Rand) (f filter) {
	ops := []string{"eq", "ne", "lt", "le", "gt", "ge"}
	for rng.IntN(2) == 0 && len(f.terms) < 2 {
		one := term{"class", ops[rng.IntN(len(ops))], classes()[rng.IntN(3)]}
		if rng.IntN(2) == 0 {
			one.tag, one.value = "size", strconv.Itoa(rng.IntN(20))
		}
		f.terms = append(f.terms, one)
	}
	f.any = len(f.terms) > 0 && rng.IntN(2) == 0
	return f
}

// args are the options of a claim.
func (f filter) args() (args []string) {
	for _, one := range f.terms {
		args = append(args, "FILTER", one.tag, one.op, one.value)
	}
	if f.any {
		args = append(args, "MATCH", "ANY", "1")
	}
	return args
}

// matches says whether a claim may take a task with these tags.
func (f filter) matches(t tags) bool {
	matches := func(one term) bool { return one.matches(t) }
	if f.any {
		return slices.ContainsFunc(f.terms, matches)
	}
	return !slices.ContainsFunc(f.terms, func(one term) bool { return !matches(one) })
}

func (f term) matches(t tags) bool {
	order := 0
	switch {
	case f.tag == "class" && t.class != "":
		order = cmp.Compare(slices.Index(classes(), t.class), slices.Index(classes(), f.value))
	case f.tag == "size" && t.size != "":
		order = cmp.Compare(len(t.size), len(f.value)) // the shorter of two decimal numbers is the smaller
		order = cmp.Or(order, cmp.Compare(t.size, f.value))
	default:
		return false
	}
	return map[string]bool{
		"eq": order == 0, "ne": order != 0, "lt": order < 0, "le": order <= 0, "gt": order > 0, "ge": order >= 0,
	}[f.op]
}
