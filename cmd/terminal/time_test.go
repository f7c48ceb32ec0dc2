package terminal

import (
	"strings"
	"testing"
	"time"
)

func TestTimesAreReadWithTheirUnits(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "500ms": 500 * time.Millisecond, "30s": 30 * time.Second, "1h30m": 90 * time.Minute, "2d": 48 * time.Hour,
		"1w": 7 * day, "1w2d3h": 9*day + 3*time.Hour, "1.5d": 36 * time.Hour, "0.5w": 84 * time.Hour,
	} {
		if got, err := ParseTime(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "soon", "d", "1.2.3d", "2 d", "1y", "2d3", "99999999w", strings.Repeat("9", 400) + "d", strings.Repeat("9", 400) + "s"} {
		if got, err := ParseTime(text); err == nil || !strings.Contains(err.Error(), "expected a time such as 30s") || len(err.Error()) > 200 {
			t.Errorf("%.80q is %v, %v; want a short error with an example", text, got, err)
		}
	}
	for _, text := range []string{"-1s", "-1d", "3651d", "522w"} {
		if got, err := ParseTime(text); err == nil || !strings.Contains(err.Error(), "expected 0s to 3650d") {
			t.Errorf("%q is %v, %v; want the longest time", text, got, err)
		}
	}
	for _, text := range []string{"30", "1.5", "-3"} {
		if got, err := ParseTime(text); err == nil || !strings.Contains(err.Error(), "has no unit: write "+text+"ms") {
			t.Errorf("%q is %v, %v; want how to write it", text, got, err)
		}
	}
}
