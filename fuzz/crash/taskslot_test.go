package crash

import "testing"

func TestASlotIsTakenOnceInItsWindow(t *testing.T) {
	for name, row := range map[string]struct {
		slot  int
		at    int64  // second of another push, after one at 90 that made "1"
		reply string // to it
		made  string // the packet that it made; empty: none
		want  []Kind
	}{
		"in the window":                    {1, 90, "1", "", nil},
		"in the window, made again":        {1, 90, "2", "2", []Kind{Doubled}},
		"in the window, no reply":          {1, 90, "", "2", []Kind{Doubled}},
		"after the window":                 {1, 95, "2", "2", nil},
		"after the window, not made again": {1, 95, "1", "", []Kind{Stuck}},
		"without a window":                 {2, 95, "1", "", nil},
		"without one, made again":          {2, 95, "2", "2", []Kind{Doubled}},
		"answered with another":            {1, 95, "1", "2", []Kind{Doubled, Stuck}},
		"not there":                        {1, 95, "2", "", []Kind{Lost}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			b.r.tasks.slots = []*slotPush{
				{slot: row.slot, asked: 90 * second, came: 90 * second, name: "1"},
				{slot: row.slot, asked: row.at * second, came: row.at * second, name: row.reply},
			}
			shown := []shownTask{{id: 0, whole: true, name: "1"}}
			if row.made != "" {
				shown = append(shown, shownTask{id: 1, whole: true, name: row.made})
			}
			b.r.compareSlots(shown)
			b.finds(row.want...)
		})
	}
}
