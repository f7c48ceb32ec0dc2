package crash

import "testing"

func TestNoMoreIsClaimedThanALimitAllowed(t *testing.T) {
	// The queue may lend two packets, and one of each tenant. A change gives tenant 0 two.
	for name, row := range map[string]struct {
		of     [3]ID    // of packets that are claimed one after the other, at seconds 91, 92 and 93
		until  [3]int64 // when an end was asked for, or the lease ends
		raised span
		want   []Kind
	}{
		"two at once":                      {[3]ID{0, 1, 2}, [3]int64{93, 99, 99}, span{95, 96}, nil},
		"three at once":                    {[3]ID{0, 1, 2}, [3]int64{99, 99, 99}, span{95, 96}, []Kind{Excess}},
		"two of a tenant":                  {[3]ID{0, 1, 3}, [3]int64{99, 92, 99}, span{95, 96}, []Kind{Excess}},
		"one of a tenant after the other":  {[3]ID{0, 1, 3}, [3]int64{93, 99, 99}, span{95, 96}, nil},
		"two after it was raised":          {[3]ID{0, 1, 3}, [3]int64{99, 92, 99}, span{90, 91}, nil},
		"two when it may have been raised": {[3]ID{0, 1, 3}, [3]int64{99, 92, 99}, span{93, 0}, nil},
		"two of another tenant":            {[3]ID{1, 2, 4}, [3]int64{99, 92, 99}, span{90, 91}, []Kind{Excess}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			raised := span{row.raised.asked * second, row.raised.came * second}
			s := shares{first: 3, changes: []span{{}, raised}}
			for i := range row.of {
				at := int64(91+i) * second
				s.lent = append([]*lending{{span{at, at}, row.of[i], "", int64(i), row.until[i] * second}}, s.lent...)
			}
			b.r.checkLent(&s)
			b.finds(row.want...)
		})
	}
}

func TestNoMoreIsTakenThanARateAllows(t *testing.T) {
	for name, row := range map[string]struct {
		burst, then int   // takes at second 90, and later
		after       int64 // so many milliseconds
		want        []Kind
	}{
		"a burst":                    {pacedBurst, 0, 0, nil},
		"more than a burst":          {pacedBurst + 1, 0, 0, []Kind{Excess}},
		"a pace later":               {pacedBurst, 1, 91, nil},
		"two, a pace later":          {pacedBurst, 2, 91, []Kind{Excess}},
		"another burst after a rest": {pacedBurst, pacedBurst, 1000, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			s := shares{}
			for i := range row.burst + row.then {
				at := 90 * second
				if i >= row.burst {
					at += row.after * 1e6
				}
				s.taken = append(s.taken, take{span{at, at}, ID(i)})
			}
			b.r.checkPace(&s, pace, func(take) bool { return true })
			b.finds(row.want...)
		})
	}
}

func TestRulesOfTenantsAreThoseAfterSomeOfTheChanges(t *testing.T) {
	row := func(name string, weight, claimed int64) any {
		return []any{"name", name, "weight", weight, "max-claimed", claimed}
	}
	for name, c := range map[string]struct {
		rows []any
		want []Kind
	}{
		"the last that was answered": {[]any{row("0", 5, 2)}, nil},
		"the last that was sent":     {[]any{row("0", 5, 2), row("1", 6, 2)}, nil},
		"one that was not sent":      {[]any{row("0", 5, 2), row("1", 6, 2), row("2", 7, 2)}, []Kind{Lost}},
		"without an answered one":    {[]any{row("1", 6, 2)}, []Kind{Lost}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			s := shares{first: 3, changes: []span{{}, {90, 91}, {92, 0}}}
			b.r.checkRules(&s, map[string]any{"max-claimed": int64(2), "share-max-claimed": int64(1)}, []any{"0", c.rows})
			b.finds(c.want...)
		})
	}
}
