package crash

import "testing"

func TestAQueueOfOneClientIsAsAfterAPartOfItsRequests(t *testing.T) {
	waits := latestPacket{payload: 1, name: "1", hasID: true}
	claimed := latestPacket{payload: 1, name: "1", claimed: true, token: 2}
	shown := func(payload ID, name, unique, state string) shownTask {
		return shownTask{id: payload, whole: true, name: name, unique: unique, state: state}
	}
	push, claim := latestOp{payload: 9}, latestOp{}
	for name, row := range map[string]struct {
		there []latestPacket
		sent  []latestOp
		shown []shownTask
		want  []Kind
	}{
		"nothing was sent":              {[]latestPacket{waits}, nil, []shownTask{shown(1, "1", "one", "ready")}, nil},
		"replaced":                      {[]latestPacket{waits}, []latestOp{push}, []shownTask{shown(9, "1", "one", "ready")}, nil},
		"not yet":                       {[]latestPacket{waits}, []latestOp{push}, []shownTask{shown(1, "1", "one", "ready")}, nil},
		"replaced, and of another name": {[]latestPacket{waits}, []latestOp{push}, []shownTask{shown(9, "2", "one", "ready")}, []Kind{Lost}},
		"without its id":                {[]latestPacket{waits}, nil, []shownTask{shown(1, "1", "", "ready")}, []Kind{Lost}},
		"torn":                          {[]latestPacket{waits}, []latestOp{push}, []shownTask{{id: 9, name: "1", unique: "one", state: "ready"}}, []Kind{Lost}},
		"gone":                          {[]latestPacket{waits}, []latestOp{push}, nil, []Kind{Lost}},
		"beside the claimed one":        {[]latestPacket{claimed}, []latestOp{push}, []shownTask{shown(9, "2", "one", "ready"), shown(1, "1", "", "claimed")}, nil},
		"claimed and with its id":       {[]latestPacket{waits}, []latestOp{claim}, []shownTask{shown(1, "1", "one", "claimed")}, []Kind{Lost}},
		"claimed, then pushed":          {[]latestPacket{waits}, []latestOp{claim, push}, []shownTask{shown(1, "1", "", "claimed"), shown(9, "2", "one", "ready")}, nil},
		"pushed, and not claimed":       {[]latestPacket{waits}, []latestOp{claim, push}, []shownTask{shown(1, "1", "one", "ready"), shown(9, "2", "one", "ready")}, []Kind{Lost}},
		"acknowledged":                  {[]latestPacket{claimed}, []latestOp{{name: "1", ack: true}}, nil, nil},
		"back":                          {[]latestPacket{claimed}, []latestOp{{name: "1"}}, []shownTask{shown(1, "1", "", "ready")}, nil},
		"back with its id":              {[]latestPacket{claimed}, []latestOp{{name: "1"}}, []shownTask{shown(1, "1", "one", "ready")}, []Kind{Lost}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTaskBench(t)
			b.r.compareLatest(&latest{there: row.there, sent: row.sent}, row.shown)
			b.finds(row.want...)
		})
	}
}
