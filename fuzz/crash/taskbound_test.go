package crash

import "testing"

func TestABoundIsNotExceededByWhatIsSurelyThere(t *testing.T) {
	b := newTaskBench(t)
	b.link = new(link)
	var first *task
	for n := range bound + 1 {
		op := b.push(belt)
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
	op := b.push(belt)
	b.add(op)
	op.answer("200")
	b.finds(Overfull)
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
