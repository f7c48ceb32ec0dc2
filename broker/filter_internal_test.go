package broker

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

var filterTexts = rapid.SampledFrom([]string{
	"", "a", "b", "low", "mid", "high", "7", "07", "+7", "-7", "12", "-0", "0", "+", "--1", "1e3", "9223372036854775807",
	"9223372036854775808", "-9223372036854775808", "-9223372036854775809", "00000000000000000000000000000000000007",
})

// Matches says without regard to speed whether tags match a filter.
func Matches(f Filter, orders []content.Order, tags []content.Tag) bool {
	met := 0
	for _, term := range f.Terms {
		for _, tag := range tags {
			if tag.Name == term.Tag && termMatches(term, orders, tag.Value) {
				met++
			}
		}
	}
	if f.Least > 0 {
		return met >= f.Least
	}
	return met == len(f.Terms)
}

func termMatches(term Term, orders []content.Order, value string) bool {
	c := strings.Compare(value, term.Value)
	declared := slices.IndexFunc(orders, func(o content.Order) bool { return o.Tag == term.Tag })
	x, xok := number(value)
	y, yok := number(term.Value)
	if declared >= 0 {
		of := func(v string) int { return slices.Index(orders[declared].Values, v) }
		if of(value) < 0 || of(term.Value) < 0 {
			return false
		}
		c = cmp.Compare(of(value), of(term.Value))
	} else if xok && yok {
		c = x.Cmp(y)
	}
	return map[Op]bool{Equal: c == 0, NotEqual: c != 0, Less: c < 0, LessOrEqual: c <= 0, Greater: c > 0, GreaterOrEqual: c >= 0}[term.Op]
}

// number reads an integer of 64 bits.
func number(s string) (*big.Int, bool) {
	n, ok := new(big.Int).SetString(s, 10)
	return n, ok && n.IsInt64()
}

func drawTags(t *rapid.T) (tags []content.Tag) {
	for _, name := range []string{"a", "ab", "b", "c"} {
		if rapid.Bool().Draw(t, "has "+name) {
			tags = append(tags, content.Tag{Name: name, Value: filterTexts.Draw(t, name)})
		}
	}
	return tags
}

func TestAFilterMatchesWhatItsTermsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Settings
		for _, tag := range []string{"ab", "b"} {
			if rapid.Bool().Draw(t, "declares "+tag) {
				values := rapid.SliceOfNDistinct(filterTexts, 1, 6, rapid.ID[string]).Draw(t, "values")
				s.Orders = append(s.Orders, content.Order{Tag: tag, Values: values})
			}
		}
		q := &queue{settings: &s, orders: ordersOf(&s)}
		var f Filter
		for range rapid.IntRange(1, 4).Draw(t, "terms") {
			f.Terms = append(f.Terms, Term{
				Tag: rapid.SampledFrom([]string{"a", "ab", "b", "d"}).Draw(t, "tag"), Op: Op(rapid.IntRange(0, 5).Draw(t, "op")), Value: filterTexts.Draw(t, "value"),
			})
		}
		f.Least = rapid.IntRange(0, len(f.Terms)).Draw(t, "least")
		accepts := f.forQueue(q)
		for range 5 {
			tags := drawTags(t)
			text := string(content.AppendTags(nil, tags))
			got, want := accepts(text), Matches(f, s.Orders, tags)
			if got != want {
				t.Fatalf("%+v with orders %q takes %q: %v, want %v", f, s.Orders, tags, got, want)
			}
			for _, by := range f.foundBy() {
				has := slices.ContainsFunc(tags, func(tag content.Tag) bool { return string(appendTag(nil, tag.Name, tag.Value)) == by })
				if got && !has {
					t.Fatalf("%+v takes %q, and is found by %q", f, tags, by)
				}
			}
		}
	})
}

func TestAFilterIsFoundByWhatAllThatItTakesHave(t *testing.T) {
	term := func(tag string, op Op, value string) Term { return Term{tag, op, value} }
	x, seven := term("a", Equal, "x"), term("b", Equal, "+07")
	for _, row := range []struct {
		f    Filter
		want string
	}{
		{Filter{Share: []byte("x")}, "sx"},
		{Filter{Share: []byte{}}, "s"},
		{Filter{Share: []byte("x"), Terms: []Term{seven}}, "sx tb=7"},
		{Filter{Terms: []Term{x}}, "ta=x"},
		{Filter{Terms: []Term{seven}}, "tb=7"},
		{Filter{Terms: []Term{term("a", Less, "x"), seven, x}}, "tb=7 ta=x"},
		{Filter{Terms: []Term{x, seven}, Least: 2}, "ta=x tb=7"},
		{Filter{Terms: []Term{x, seven}, Least: 1}, ""},
		{Filter{Terms: []Term{term("a", NotEqual, "x"), term("b", GreaterOrEqual, "7")}}, ""},
	} {
		if got := strings.Join(row.f.foundBy(), " "); got != row.want {
			t.Errorf("%+v is found by %q, want %q", row.f, got, row.want)
		}
	}
}

func TestWaitersWithEqualFiltersAreOneClass(t *testing.T) {
	m := &Machine{classes: []*class{{}, {narrow: true}}, classOf: map[string]index.Class{}}
	filter := func(value string) *Filter { return &Filter{Terms: []Term{{Tag: "tenant", Value: value}}} }
	var equal, others []*Conn
	for i := range 1000 {
		c := &Conn{}
		m.joinClass(c, filter("7"), batchOf{}, false)
		equal = append(equal, c)
		if c.class != equal[0].class || !m.filters(c) {
			t.Fatalf("waiter %d is of class %d, the first of %d", i, c.class, equal[0].class)
		}
	}
	narrow := Selection{Fits16: true}
	for _, c := range []*Conn{{}, {delivery: narrow}, {}} {
		m.joinClass(c, filter([]string{"7", "7", "8"}[len(others)]), batchOf{}, false)
		others = append(others, c)
	}
	if a, n, x := others[0].class, others[1].class, others[2].class; a != equal[0].class || a == n || a == x || n == x {
		t.Errorf("classes %d, %d and %d for an equal filter, the same of a narrow one, and another; the first is %d", a, n, x, equal[0].class)
	}
	for _, c := range append(equal, others...) {
		m.leaveClass(c)
		if c.class != plainClass(c.delivery.Fits16) {
			t.Fatalf("who has left is of class %d", c.class)
		}
	}
	if len(m.classOf) > 0 || len(m.freeClasses) != 3 {
		t.Errorf("%d classes are left and %d are free, want 0 and 3", len(m.classOf), len(m.freeClasses))
	}
}

func TestAskingAFilterAllocatesNothing(t *testing.T) {
	s := Settings{Orders: []content.Order{{Tag: "class", Values: []string{"low", "high"}}}}
	q := &queue{settings: &s, orders: ordersOf(&s)}
	f := Filter{Least: 1}
	for i := range MaxTerms {
		f.Terms = append(f.Terms, Term{Tag: fmt.Sprint("tag", i), Op: LessOrEqual, Value: "7"})
	}
	f.Terms[0] = Term{Tag: "class", Op: Less, Value: "low"}
	accepts := f.forQueue(q)
	tags := string(content.AppendTags(nil, []content.Tag{{Name: "class", Value: "high"}, {Name: "tag3", Value: "12"}, {Name: "tag4", Value: "x"}}))
	if n := testing.AllocsPerRun(100, func() {
		if accepts(tags) {
			t.Fatal("accepted")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
