package terminal

import (
	"strings"
	"testing"
	"time"
)

func TestCellsCannotDriveATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "": `""`, "é ü": "é ü", "a\tb": `"a\tb"`, "\x1b[31m": `"\x1b[31m"`, "\xff": `"\xff"`, " x": `" x"`,
		strings.Repeat("é", 10): "éééééééé…", "\n" + strings.Repeat("x", 10): `"\nxxxxxxx"…`,
	} {
		if got := cell(text, 8); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestTimesForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 1500 * time.Microsecond: "1ms", 59*time.Second + 9e8: "59s", time.Minute: "1m", 61 * time.Second: "1m1s",
		time.Hour + 59*time.Second: "1h", 26*time.Hour + time.Minute: "1d2h", 400 * 24 * time.Hour: "400d",
	} {
		if got := Span(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.Local)
	for at, want := range map[time.Time]string{{}: "", now.Add(time.Hour): "2026-11-21 04:00:00 (in 1h)", now.Add(-time.Minute): "2026-11-21 02:59:00 (1m ago)"} {
		if got := Moment(at, now); got != want {
			t.Errorf("%v is %q, want %q", at, got, want)
		}
	}
}
