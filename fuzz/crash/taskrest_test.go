package crash

import "testing"

func TestASurelyRestingShareGivesNothing(t *testing.T) {
	held := func(asked, came, ms int64) *restChange {
		return &restChange{span{asked * second, came * second}, ms, true, came != 0}
	}
	ended := func(asked, came int64) *restChange {
		return &restChange{span{asked * second, came * second}, 0, false, came != 0}
	}
	for name, row := range map[string]struct {
		changes []*restChange
		want    []Kind
	}{
		"while it rests":                  {[]*restChange{held(90, 91, 5000)}, []Kind{Early}},
		"after its rest":                  {[]*restChange{held(90, 91, 2000)}, nil},
		"when its rest may begin":         {[]*restChange{held(90, 93, 5000)}, nil},
		"when nobody answered":            {[]*restChange{held(90, 0, 5000)}, nil},
		"after an end":                    {[]*restChange{held(90, 91, 5000), ended(91, 92)}, nil},
		"after an end that may have come": {[]*restChange{held(90, 91, 5000), ended(91, 0)}, nil},
		"after an end before":             {[]*restChange{ended(88, 89), held(90, 91, 5000)}, []Kind{Early}},
		"after a shorter rest":            {[]*restChange{held(90, 91, 5000), held(90, 91, 1)}, []Kind{Early}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			s := rests{taken: []take{{span{92 * second, 93 * second}, restKeys}}}
			s.changes[0] = row.changes
			b.r.checkGiven(&s)
			b.finds(row.want...)
		})
	}
}

func TestARestartMakesNoRestShorterOrLonger(t *testing.T) {
	set := func(ms int64) *restChange { return &restChange{span{90 * second, 91 * second}, ms, false, true} }
	unanswered := &restChange{span{90 * second, 91 * second}, 5000, true, false}
	for name, row := range map[string]struct {
		changes []*restChange
		rests   int64 // as it is shown at second 93
		got     bool
		want    []Kind
	}{
		"as long":                 {[]*restChange{set(5000)}, 3000, false, nil},
		"as long, and it gives":   {[]*restChange{set(5000)}, 3000, true, []Kind{Early}},
		"forgotten":               {[]*restChange{set(5000)}, 0, true, []Kind{Lost}},
		"as short as it may be":   {[]*restChange{set(5000)}, 2000, false, nil},
		"shorter":                 {[]*restChange{set(5000)}, 1900, false, []Kind{Lost}},
		"too long":                {[]*restChange{set(5000)}, 4100, false, []Kind{Stuck}},
		"for no reason":           {nil, 100, false, []Kind{Stuck}},
		"over, and gives":         {[]*restChange{set(1000)}, 0, true, nil},
		"over, and gives none":    {[]*restChange{set(1000)}, 0, false, []Kind{Stuck}},
		"perhaps not carried out": {[]*restChange{unanswered}, 0, true, nil},
		"perhaps carried out":     {[]*restChange{unanswered}, 2500, false, nil},
		"after it was ended": {[]*restChange{set(5000), {span{91*second + 1, 92 * second}, 0, false, true}},
			2500, false, []Kind{Stuck}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			s := rests{}
			s.changes[0] = row.changes
			now := span{93 * second, 93 * second}
			b.r.checkRest(&s, 0, map[string]any{"rests": row.rests, "ready": int64(1)}, row.got, now)
			b.finds(row.want...)
			if goesOn := len(s.changes[0]) == 1; goesOn != (row.rests > 0) || goesOn && s.until(0, span{94 * second, 94 * second}) != now.asked+row.rests*1e6 {
				t.Errorf("it goes on from %+v", s.changes[0])
			}
		})
	}
}
