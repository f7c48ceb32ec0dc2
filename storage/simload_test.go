package storage

import (
	"errors"
	"maps"
	"os"
	"slices"

	"github.com/holdfast-queue/holdfast/storage/tables"
)

// refuse has a start find a packet more than the control record counts. It changes nothing then.
func (c *sim) refuse() {
	tally, before := c.s.Control().Tally, c.disk.Calls()
	tally.Live++
	if err := c.s.Verify(tally); !errors.Is(err, ErrLoss) || c.disk.Calls() != before {
		c.Fatalf("a start that finds a packet too many makes %d calls: %v", c.disk.Calls()-before, err)
	}
}

// keep keeps the batches of a start that are one.
func (c *sim) keep() {
	last := c.acked
	c.keeps = last
	err := c.s.Keep()
	if !c.within(err) {
		c.Fatalf("it does not keep: %v", err)
	}
	c.Say("keeps batch %d: %v", last, err)
	switch {
	case c.dead || errors.Is(err, ErrUnknown): // it may be there or not
	case err != nil:
		c.keeps = 0
	default:
		c.durable = last
	}
}

// wholeEnds forgets what was not kept of batches that are one.
func (c *sim) wholeEnds() {
	if c.whole {
		maps.DeleteFunc(c.come, func(batch uint64, _ *model) bool { return batch != c.durable && batch != c.keeps })
	}
	c.whole = false
}

// checkNames holds what is in the folder of the tables against their list.
func (c *sim) checkNames() {
	want := []string{tables.ListName}
	for _, t := range c.s.tables.List().Tables {
		want = append(want, t.Name())
	}
	slices.Sort(want)
	entries, err := os.ReadDir(c.at("data/" + dbName))
	c.must("a list", err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !c.dead && !slices.Equal(names, want) {
		c.Fatalf("a start leaves %q in the folder of the tables, want %q", names, want)
	}
}
