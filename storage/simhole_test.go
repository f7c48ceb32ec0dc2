package storage

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// hole takes a record out of a copy of the folder. A start that accepts the loss has all that came
// behind it, and nothing that this deleted.
func (c *sim) hole() {
	dir := filepath.Join(c.Root, "holed")
	c.must("a copy", copied(c.at("data"), dir))
	defer func() { c.must("a folder", os.RemoveAll(dir)) }()
	logs, err := filepath.Glob(filepath.Join(dir, journalName, "*.log"))
	c.must("a list", err)
	var name string
	var records []int
	for _, log := range logs {
		b, err := os.ReadFile(log)
		c.must("a file", err)
		var found []int
		for at := 0; at < len(b); at += journalPage {
			if bytes.HasPrefix(b[at:], []byte("HFRC")) {
				found = append(found, at)
			}
		}
		if len(found) > len(records) {
			name, records = log, found
		}
	}
	if len(records) < 3 {
		return
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	c.must("a file", err)
	_, err = f.WriteAt(make([]byte, journalPage), int64(records[c.r.IntN(len(records)-1)]))
	c.must("a file", errors.Join(err, f.Close()))
	o := c.o
	var s *Store
	o.AcceptLoss, o.Stepped = true, func() { s.Step(StepFlush) }
	s, err = Open(dir, o)
	c.must("a start that accepts a loss", err)
	defer s.Close()
	batch, last := s.Control().Batch, uint64(0)
	for _, f := range s.Accepted() {
		var before, behind uint64
		if _, what, ok := strings.Cut(f.What, "between "); ok {
			_, err := fmt.Sscanf(what, "batch %d and batch %d", &before, &behind)
			c.must(f.What, err)
			last = max(last, behind)
		}
	}
	was := c.come[batch]
	if was == nil || last == 0 {
		return
	}
	_, tally := scanned(c.T, s)
	if err := s.Verify(tally); err != nil && !errors.Is(err, ErrLoss) {
		c.Fatalf("a start that accepts a loss: %v", err)
	}
	c.Say("a hole before batch %d, of %d", last, batch)
	n, err := s.Snapshot()
	c.must("a snapshot", err)
	defer n.Close()
	has, want := n.raw(c.T), was.raw()
	for _, key := range slices.Sorted(maps.Keys(c.touched)) {
		if at := c.touched[key]; at < last || at > batch {
			continue
		}
		if got, there := has[key]; got != want[key] {
			c.Fatalf("behind a hole before batch %d, of %d: %s: there is %v, %.20q, want %.20q", last, batch, content.DescribeKey([]byte(key)), there, got.value, want[key].value)
		}
	}
}
