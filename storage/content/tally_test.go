package content

import (
	"errors"
	"testing"
)

func TestTallyCountsWhatHasNoExpiryInAnyOrder(t *testing.T) {
	a, b := PacketID{1, 2, 3}, PacketID{1, 2, 4}
	var one, other Tally
	one.Add(a, 0)
	one.Add(b, 0)
	one.Add(PacketID{9, 9, 9}, 1)
	other.Add(b, 0)
	other.Merge(Tally{Live: 1, Hash: SetHash(a)})
	if one != other || one.Live != 2 || one.Hash == 0 {
		t.Errorf("tallies %+v and %+v", one, other)
	}
}

func TestOnlyWhatUnreadRecordsCannotExplainIsAMismatch(t *testing.T) {
	want := Tally{Live: 20, Hash: 7}
	for name, c := range map[string]struct {
		scan   Tally
		unread uint64
		wrong  string // "lost", or "came back"; "" for nothing
	}{
		"the same":                            {Tally{Live: 20, Hash: 7}, 0, ""},
		"as many of other packets":            {Tally{Live: 20, Hash: 8}, 0, "lost"},
		"one less":                            {Tally{Live: 19, Hash: 7}, 0, "lost"},
		"one more":                            {Tally{Live: 21, Hash: 7}, 0, "came back"},
		"the same and one unread":             {Tally{Live: 20, Hash: 7}, 1, ""},
		"one less and one unread":             {Tally{Live: 19, Hash: 8}, 1, ""},
		"two less and one unread":             {Tally{Live: 18, Hash: 8}, 1, "lost"},
		"one more and any number not read":    {Tally{Live: 21, Hash: 8}, 9, "came back"},
		"none at all, and all of them unread": {Tally{}, 20, ""},
	} {
		var mismatch *MismatchError
		err := want.Check(c.scan, c.unread)
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.wrong != "" && (!errors.As(err, &mismatch) || !errors.Is(err, ErrLoss) || mismatch.CameBack() != (c.wrong == "came back")):
			t.Errorf("%s: %v, want one that says %s", name, err, c.wrong)
		}
	}
}
