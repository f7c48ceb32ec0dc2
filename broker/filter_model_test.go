package broker_test

import (
	"cmp"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
)

// tagValues are the values of the tags in the model. Some queues declare an order of the classes:
// that in which they stand here. By their bytes high comes first.
var tagValues = map[string][]string{"class": {"low", "high"}, "n": {"2", "10", "x", ""}}

func drawTags(t *rapid.T) (tags []broker.PacketTag) {
	for _, name := range []string{"class", "n"} {
		if rapid.Bool().Draw(t, "has "+name) {
			tags = append(tags, broker.PacketTag{Name: name, Value: rapid.SampledFrom(tagValues[name]).Draw(t, name)})
		}
	}
	return tags
}

func drawFilter(t *rapid.T) *broker.Filter {
	n := rapid.IntRange(-3, 2).Draw(t, "terms")
	if n <= 0 {
		return nil
	}
	f := &broker.Filter{Least: rapid.IntRange(0, n).Draw(t, "least")}
	for range n {
		name := rapid.SampledFrom([]string{"class", "n"}).Draw(t, "tag")
		op := broker.Op(rapid.IntRange(int(broker.Equal), int(broker.GreaterOrEqual)).Draw(t, "op"))
		f.Terms = append(f.Terms, broker.Term{Tag: name, Op: op, Value: rapid.SampledFrom(tagValues[name]).Draw(t, "value")})
	}
	return f
}

// drawOrder lets settings declare an order of the classes, or none.
func drawOrder(t *rapid.T, s *broker.Settings) {
	if rapid.Bool().Draw(t, "order") {
		s.Orders = append([]broker.Order{{Tag: "class", Values: tagValues["class"]}}, s.Orders...)
	}
}

// matching returns those of the tasks of a queue that a filter takes.
func (m *workModel) matching(queue string, f *broker.Filter, tasks []*task) []*task {
	if f == nil {
		return tasks
	}
	ranks := tagValues["class"]
	if orders := m.settings(queue).Orders; len(orders) == 0 || orders[0].Tag != "class" {
		ranks = slices.Sorted(slices.Values(ranks))
	}
	return slices.DeleteFunc(tasks, func(k *task) bool {
		met := 0
		for _, term := range f.Terms {
			i := slices.IndexFunc(k.tags, func(tag broker.PacketTag) bool { return tag.Name == term.Tag })
			if i < 0 {
				continue
			}
			value := k.tags[i].Value
			c := cmp.Compare(value, term.Value)
			if a, err := strconv.Atoi(value); err == nil {
				if b, err := strconv.Atoi(term.Value); err == nil {
					c = a - b
				}
			}
			if term.Tag == "class" {
				c = slices.Index(ranks, value) - slices.Index(ranks, term.Value)
			}
			if holds := []bool{c == 0, c != 0, c < 0, c <= 0, c > 0, c >= 0}; holds[term.Op] {
				met++
			}
		}
		return met < cmp.Or(f.Least, len(f.Terms))
	})
}
