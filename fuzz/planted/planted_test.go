package planted

import (
	"flag"
	"testing"
	"time"
)

var plant = flag.Bool("planted", false, "build the tests with each bug, and run them")

func TestPlantedBugsFitTheSource(t *testing.T) {
	for _, b := range bugs() {
		if _, err := b.Source(); err != nil {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
}

func TestPlantedBugsAreFound(t *testing.T) {
	if !*plant {
		t.Skip("skipped: make planted builds the tests with each bug")
	}
	for _, b := range bugs() {
		t.Run(b.Name, func(t *testing.T) {
			begun := time.Now()
			by := b.FoundBy(t)
			if by == "" {
				t.Fatalf("the bug is not found in %v", time.Since(begun).Round(time.Second))
			}
			t.Logf("found after %v: %s", time.Since(begun).Round(time.Second), by)
		})
	}
}
