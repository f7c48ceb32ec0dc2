package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

func TestEachEventOfOperatorsIsALine(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	logEvents(log, []broker.Event{
		{Kind: broker.EventDead, Database: 1, Queue: "q", ID: 7, Attempts: 5, Reason: strings.Repeat("r", 300)},
		{Kind: broker.EventBound, Queue: "q"},
		{Kind: broker.EventOld, Queue: "q", Age: 61_000},
		{Kind: broker.EventYoung, Queue: "q"},
		{Kind: broker.EventMissed, Queue: "q", Messages: 3},
		{Kind: broker.EventDisk, State: "refuses all"},
		{Kind: broker.EventDisk, State: broker.Fine},
		{Kind: broker.EventClock, Ahead: -90_000},
		{Kind: broker.EventShape, Queue: "q", Queues: 2},
		{Kind: broker.EventBackground, Reason: "cannot merge"},
		{Kind: broker.EventDead, Tail: true, Queue: "q"},
	})
	want := `level=WARN msg="packet died" database=1 queue=q id=7 attempts=5 reason=` + strings.Repeat("r", 256) + `
level=WARN msg="queue has reached its bound" database=0 queue=q
level=WARN msg="oldest packet of a queue is older than its alert-age" database=0 queue=q age=1m1s
level=INFO msg="oldest packet of a queue is younger than its alert-age again" database=0 queue=q age=0s
level=WARN msg="events of a queue were left out" database=0 queue=q events=3
level=WARN msg="disk is nearly full" state="refuses all"
level=INFO msg="disk refuses nothing any more"
level=WARN msg="wall clock has jumped" ahead=-1m30s
level=WARN msg="queues keep the shape that they had: too many packets would move. QSTAT says which, QSET with FORCE moves them" queues=2 one=q
level=WARN msg="work in the background fails again and again" error="cannot merge"
`
	if out.String() != want {
		t.Errorf("logged\n%swant\n%s", out.String(), want)
	}
}
