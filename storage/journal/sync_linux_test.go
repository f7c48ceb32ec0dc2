package journal

import (
	"testing"
	"time"
)

func TestSyncIsARawCallWhileTheDiskIsQuick(t *testing.T) {
	var s syncer
	for _, step := range []struct {
		what  string
		times int
		took  time.Duration
		quick bool
	}{
		{"too few to know", calmSyncs - 1, 100 * time.Microsecond, false},
		{"one more", 1, 100 * time.Microsecond, true},
		{"a slow one", 1, slowSync, false},
		{"too few since", calmSyncs - 1, 100 * time.Microsecond, false},
		{"one more", 1, 100 * time.Microsecond, true},
		{"some not so quick", 3, 3 * time.Millisecond, true},
		{"many of those", 20, 3 * time.Millisecond, false},
		{"quick again", 20, 100 * time.Microsecond, true},
	} {
		for range step.times {
			s.note(step.took)
		}
		if s.quick() != step.quick {
			t.Errorf("after %s (%d × %v): quick is %v", step.what, step.times, step.took, s.quick())
		}
	}
}
