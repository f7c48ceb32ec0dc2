package daemon

import (
	"log/slog"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// maxLogged is the most bytes of a name or a reason in a line of the log.
const maxLogged = 256

// logEvents logs what operators are told. Clients can cause most of it: the log has a brake.
func logEvents(log *slog.Logger, events []broker.Event) {
	for i := range events {
		e := &events[i]
		if e.Tail {
			continue
		}
		of := []any{"database", e.Database, "queue", e.Queue[:min(len(e.Queue), maxLogged)]}
		reason := e.Reason[:min(len(e.Reason), maxLogged)]
		switch age := time.Duration(e.Age) * time.Millisecond; e.Kind {
		case broker.EventDead:
			log.Warn("packet died", append(of, "id", int64(e.ID), "attempts", e.Attempts, "reason", reason)...)
		case broker.EventBound:
			log.Warn("queue has reached its bound", of...)
		case broker.EventOld:
			log.Warn("oldest packet of a queue is older than its alert-age", append(of, "age", age)...)
		case broker.EventYoung:
			log.Info("oldest packet of a queue is younger than its alert-age again", append(of, "age", age)...)
		case broker.EventMissed:
			log.Warn("events of a queue were left out", append(of, "events", e.Messages)...)
		case broker.EventDisk:
			logDisk(log, e.State)
		case broker.EventMemory:
			logMemory(log, e.State)
		case broker.EventClock:
			log.Warn("wall clock has jumped", "ahead", time.Duration(e.Ahead)*time.Millisecond)
		case broker.EventShape:
			log.Warn("queues keep the shape that they had: too many packets would move. QSTAT says which, QSET with FORCE moves them", "queues", e.Queues, "one", e.Queue)
		case broker.EventBackground:
			log.Warn("work in the background fails again and again", "error", reason)
		}
	}
}

func logDisk(log *slog.Logger, state string) {
	if state == broker.Fine {
		log.Info("disk refuses nothing any more")
	} else {
		log.Warn("disk is nearly full", "state", state)
	}
}

func logMemory(log *slog.Logger, state string) {
	if state == broker.Fine {
		log.Info("memory has nothing refused any more")
	} else {
		log.Warn("memory is nearly full", "state", state)
	}
}
