package daemon

import "testing"

func TestMoreMayPileUpWhereACollectionScansMore(t *testing.T) {
	const mib = 1 << 20
	for _, row := range []struct {
		live, scans uint64
		want        int
	}{
		{0, 0, maxPercent},
		{24 * mib, 0, 100},
		{240 * mib, 0, 10},         // packets
		{240 * mib, 200 * mib, 51}, // names
		{1 << 40, 1 << 30, minPercent},
	} {
		if got := percentOf(row.live, row.scans); got != row.want {
			t.Errorf("percentOf(%d, %d) = %d, want %d", row.live, row.scans, got, row.want)
		}
	}
}
