package storage

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
		kind   string // of the finding, "" for none
	}{
		"the same":                            {Tally{Live: 20, Hash: 7}, 0, ""},
		"as many of other packets":            {Tally{Live: 20, Hash: 8}, 0, FindingLost},
		"one less":                            {Tally{Live: 19, Hash: 7}, 0, FindingLost},
		"one more":                            {Tally{Live: 21, Hash: 7}, 0, FindingResurrected},
		"the same and one unread":             {Tally{Live: 20, Hash: 7}, 1, ""},
		"one less and one unread":             {Tally{Live: 19, Hash: 8}, 1, ""},
		"two less and one unread":             {Tally{Live: 18, Hash: 8}, 1, FindingLost},
		"one more and any number not read":    {Tally{Live: 21, Hash: 8}, 9, FindingResurrected},
		"none at all, and all of them unread": {Tally{}, 20, ""},
	} {
		var mismatch *MismatchError
		err := want.Check(c.scan, c.unread)
		switch {
		case c.kind == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.kind != "" && (!errors.As(err, &mismatch) || !errors.Is(err, ErrLoss) || mismatch.Finding().Kind != c.kind):
			t.Errorf("%s: %v, want a finding of the kind %s", name, err, c.kind)
		}
	}
}
