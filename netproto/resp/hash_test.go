package resp_test

import (
	"strconv"
	"testing"
)

func TestRandomFieldsAreOfTheHash(t *testing.T) {
	c := dial(t, newDoor(t).addr())
	const fields = 100
	for i := range 2 * fields {
		c.do("HSET", "h", strconv.Itoa(i), strconv.Itoa(-i))
	}
	for i := range 2 * fields {
		if i%2 == 1 {
			c.do("HDEL", "h", strconv.Itoa(i))
		}
	}
	draw := func(count string, want int, different bool) (seen map[string]bool) {
		t.Helper()
		seen = make(map[string]bool)
		list := c.do("HRANDFIELD", "h", count, "WITHVALUES").elements
		if len(list) != 2*want {
			t.Fatalf("HRANDFIELD h %s: %d names and values, want %d", count, len(list), 2*want)
		}
		for i := 0; i < len(list); i += 2 {
			name, value := list[i].text, list[i+1].text
			n, err := strconv.Atoi(name)
			if err != nil || n%2 == 1 || value != strconv.Itoa(-n) {
				t.Fatalf("HRANDFIELD h %s: field %q with value %q is not of the hash", count, name, value)
			}
			if different && seen[name] {
				t.Fatalf("HRANDFIELD h %s: field %q twice", count, name)
			}
			seen[name] = true
		}
		return seen
	}
	draw("10", 10, true)
	draw("50", 50, true)
	draw("200", fields, true)
	draw("-10", 10, false)
	if seen := draw("-10000", 10000, false); len(seen) != fields {
		t.Errorf("10000 draws gave %d different fields of %d", len(seen), fields)
	}
}
