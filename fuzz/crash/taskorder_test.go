package crash

import "testing"

// orderBench has two packets of a key, which were pushed at second 90, the first at a lower place.
func orderBench(t *testing.T) (*taskBench, *orders) {
	b := newTaskBench(t)
	s := &b.r.tasks.orders
	s.changes = []span{{}}
	for i := range int64(2) {
		s.packets = append(s.packets, &orderedPacket{span: span{90 * second, 90 * second}, priority: 1, number: 1 + i, leaves: never, deleted: never})
	}
	return b, s
}

func TestOnePacketOfAKeyIsOutAndTheFirstIsFirst(t *testing.T) {
	for name, row := range map[string]struct {
		change func(s *orders, first *outing)
		want   []Kind
	}{
		"behind one that was acknowledged":   {func(_ *orders, o *outing) { o.until, o.of.leaves = 93*second, 93*second }, nil},
		"beside one":                         {func(_ *orders, o *outing) { o.of.leaves = 93 * second }, []Kind{Excess}},
		"beside one that may be deleted":     {func(_ *orders, o *outing) { o.of.leaves, o.of.deleted = 93*second, 93*second }, nil},
		"beside one of another key":          {func(_ *orders, o *outing) { o.of.key = 1 }, nil},
		"after one came back":                {func(_ *orders, o *outing) { o.until = 93 * second }, []Kind{Order}},
		"after a worse one":                  {func(_ *orders, o *outing) { o.until, o.of.priority = 93*second, 2 }, []Kind{Order}},
		"before one without a reply":         {func(_ *orders, o *outing) { o.until, o.of.came = 93*second, 0 }, nil},
		"behind a dead one":                  {dead, []Kind{Order}},
		"behind a dead one that was deleted": {func(s *orders, o *outing) { dead(s, o); o.of.deleted = 94 * second }, nil},
		"behind a dead one, after a redrive": {func(s *orders, o *outing) { dead(s, o); s.redrives = []*span{{93 * second, 0}} }, nil},
		"behind a dead one, after one long ago": {func(s *orders, o *outing) { dead(s, o); s.redrives = []*span{{90 * second, 91 * second}} },
			[]Kind{Order}},
		"behind a dead one that holds nothing": {func(s *orders, o *outing) { dead(s, o); s.first = 5 }, nil},
		"while that changes": {func(s *orders, o *outing) {
			dead(s, o)
			s.first = 5
			s.changes = append(s.changes, span{92, 0})
		}, nil},
		"after it has changed": {func(s *orders, o *outing) {
			dead(s, o)
			s.first = 5
			s.changes = append(s.changes, span{92, 93})
		},
			[]Kind{Order}},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := orderBench(t)
			first := &outing{span{92 * second, 92 * second}, s.packets[0], 1, 97 * second, 0}
			row.change(s, first)
			s.out = []*outing{{span{95 * second, 95 * second}, s.packets[1], 2, 99 * second, 0}, first}
			b.r.checkOutings(s)
			b.finds(row.want...)
		})
	}
}

func dead(_ *orders, o *outing) { o.until, o.of.leaves, o.died = 93*second, 93*second, 94*second }

func TestARestartKeepsWhatIsOut(t *testing.T) {
	for name, row := range map[string]struct {
		change func(first, second *shownTask)
		acked  bool
		want   []Kind
	}{
		"one":                     {func(_, second *shownTask) { second.state, second.token = "ready", 0 }, false, nil},
		"two":                     {func(_, _ *shownTask) {}, false, []Kind{Excess}},
		"one and one that failed": {func(_, o *shownTask) { o.state = "delayed" }, false, []Kind{Excess}},
		"one and a new one":       {func(_, o *shownTask) { o.state, o.token = "delayed", 0 }, false, nil},
		"of two keys":             {func(_, o *shownTask) { o.key, o.id = "1", 2 }, false, []Kind{Lost}},
		"one after its ack":       {func(_, second *shownTask) { second.state, second.token = "ready", 0 }, true, []Kind{Returned}},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := orderBench(t)
			s.packets = append(s.packets, &orderedPacket{key: 1, leaves: never})
			s.packets[0].acked = row.acked
			shown := []shownTask{
				{id: 0, whole: true, name: "1", key: "0", state: "claimed", token: 1, leaseEnd: b.r.millis(97 * second)},
				{id: 1, whole: true, name: "2", key: "0", state: "claimed", token: 2, leaseEnd: b.r.millis(98 * second), notBefore: b.r.millis(98 * second)},
			}
			row.change(&shown[0], &shown[1])
			b.r.compareOrdered(shown, span{95 * second, 95 * second})
			b.finds(row.want...)
		})
	}
}
