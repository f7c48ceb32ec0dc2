package daemon

import (
	"context"
	"errors"
	"runtime/debug"
	"testing"

	"github.com/holdfast-queue/holdfast/storage"
)

// watchedStart is a store that ends a start when it is read, and notes which garbage might pile up
// then, in percent.
type watchedStart struct {
	Store
	percent int
}

var errLooked = errors.New("looked")

// off is a percentage that nobody chooses: there are no collections.
const off = -1

func (s *watchedStart) Walk(storage.Visitor) error {
	s.percent = debug.SetGCPercent(off)
	debug.SetGCPercent(s.percent)
	return errLooked
}

func TestTheCollectorIsTunedFromBeforeARecovery(t *testing.T) {
	store := &watchedStart{}
	defer debug.SetGCPercent(debug.SetGCPercent(off))
	err := Run(context.Background(), Config{
		Data: t.TempDir(), Pinpriq: "127.0.0.1:0", WrapStore: func(s Store) Store { store.Store = s; return store },
	})
	if !errors.Is(err, errLooked) || store.percent == off {
		t.Errorf("error %v, %d %% of garbage while the folder was read; want what TuneGC chose", err, store.percent)
	}
}

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
