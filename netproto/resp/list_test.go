package resp_test

import (
	"strconv"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// fill pushes n elements to the right end of a list, 0 to n-1.
func fill(c *client, name string, n int) {
	c.t.Helper()
	args := []string{"RPUSH", name}
	for i := range n {
		if args = append(args, strconv.Itoa(i)); len(args) == 2000 || i == n-1 {
			if r := c.do(args...); r.String() != number(i+1) {
				c.t.Fatalf("RPUSH: %s, want %d", r, i+1)
			}
			args = args[:2]
		}
	}
}

func TestAPopTakesNoMoreThanABatchDoes(t *testing.T) {
	c := dial(t, newDoor(t).addr())
	const n = 70_000
	fill(c, "k", n)
	list := c.do("LPOP", "k", strconv.Itoa(n)).elements
	if len(list) != broker.MaxGroup || list[0].text != "0" || list[broker.MaxGroup-1].text != strconv.Itoa(broker.MaxGroup-1) {
		t.Fatalf("LPOP of %d elements: %d of them, want the first %d", n, len(list), broker.MaxGroup)
	}
	r := c.do("LMPOP", "1", "k", "RIGHT", "COUNT", strconv.Itoa(n))
	if got := r.elements[1].elements; len(got) != n-broker.MaxGroup || got[0].text != strconv.Itoa(n-1) {
		t.Fatalf("LMPOP of the rest: %d elements, want %d", len(got), n-broker.MaxGroup)
	}
	if r := c.do("EXISTS", "k"); r.text != "0" {
		t.Errorf("EXISTS of what was emptied: %s", r)
	}
}
