package simulated

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSeedsAreOfAFileAndThoseAsked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seeds")
	must(t, os.WriteFile(file, []byte("# why\n7 # because\n\n 9\n"), 0o600))
	seeds, err := Seeds("", file, 3, 2)
	if want := []uint64{7, 9, 3, 4}; err != nil || !slices.Equal(seeds, want) {
		t.Errorf("the seeds are %v, want %v: %v", seeds, want, err)
	}
	if seeds, err := Seeds("12", "none", 3, 2); err != nil || !slices.Equal(seeds, []uint64{12}) {
		t.Errorf("the one seed is %v: %v", seeds, err)
	}
}

func TestWhatIsNoSeedIsTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seeds")
	must(t, os.WriteFile(file, []byte("7\nseven\n"), 0o600))
	for want, of := range map[string][2]string{
		`seed "x1" is no number`:           {"x1", file},
		`seeds: seed "seven" is no number`: {"", file},
		"the file of seeds cannot be read": {"", file + "less"},
	} {
		if _, err := Seeds(of[0], of[1], 1, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("seed %q of %s: %v, want %q", of[0], of[1], err, want)
		}
	}
}
