package crash

import "testing"

func TestABoundIsNotExceededByWhatIsSurelyThere(t *testing.T) {
	b := newTaskBench(t)
	b.link = new(link)
	var first *task
	for n := range bound + 1 {
		op := b.push(belt, 1)
		b.add(op)
		if n == bound {
			b.r.tasks.leave(first)
		}
		op.answer(decimal(int64(100 + n)))
		if first == nil {
			first = op.of
		}
	}
	b.finds()
	op := b.push(belt, 1)
	b.add(op)
	op.answer("200")
	b.finds(Overfull)
}

func TestAPushOfSeveralTasksIsWholeOrNotAtAll(t *testing.T) {
	for name, row := range map[string]struct {
		queue  string
		shown  int // of three tasks, the first ones
		change func(all []*task)
		want   bool // a finding
	}{
		"all":                    {crate, 3, func([]*task) {}, false},
		"none":                   {crate, 0, func([]*task) {}, false},
		"a part":                 {crate, 1, func([]*task) {}, true},
		"a part, others ended":   {crate, 2, func(all []*task) { all[2].turns = append(all[2].turns, &turn{acked: true}) }, false},
		"a part of what ended":   {crate, 0, func(all []*task) { all[0].turns = append(all[0].turns, &turn{acked: true}) }, true},
		"a part, others dropped": {shelf, 1, func([]*task) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			var all []*task
			var shown []shownTask
			for range 3 {
				id, of := b.r.tasks.add(b.number, task{queue: row.queue}, 95*second, 0)
				all, shown = append(all, of), append(shown, shownTask{id: id})
			}
			for _, of := range all {
				of.with = all
			}
			row.change(all)
			b.r.checkBatchesLocked(shown[:row.shown])
			if found := b.r.count(Order) > 0; found != row.want {
				t.Errorf("found: %v, expected %v", found, row.want)
			}
		})
	}
}

func TestAWorseTaskDoesNotStayForABetterOne(t *testing.T) {
	for name, row := range map[string]struct {
		priority, since int64
		want            []Kind
	}{
		"a better one":               {2, 90, nil},
		"an equal one":               {3, 90, nil},
		"a worse one":                {4, 90, []Kind{Dropped}},
		"a worse one that came late": {4, 96, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			b.r.tasks.misses = []miss{{1, 3, 95 * second}}
			b.r.checkMissesLocked([]stayed{{2, row.priority, row.since * second}})
			b.finds(row.want...)
		})
	}
}
