package resp

import "github.com/holdfast-queue/holdfast/netproto/access"

// The work queue: packets that are claimed, and acknowledged or returned. Their commands are
// Holdfast's own. Times are in milliseconds.

func workCommands() []command {
	const read, write = flagRead, flagWrite
	return []command{
		{name: "qpush", arity: -3, flags: write | flagAdds | flagPayload | flagBlocking | flagFast, first: 1, last: 1, step: 1, run: qpush},
		{name: "qmpush", arity: -4, flags: write | flagAdds | flagPayload | flagBlocking, first: 1, last: 1, step: 1, elements: 3, per: 1, run: qmpush},
		{name: "qload", arity: -3, flags: write | flagAdds | flagPayload | flagFast, first: 1, last: 1, step: 1, right: access.Push | access.Manage, asks: asksOrigin, run: qload},
		{name: "qpop", arity: -2, flags: write | flagBlocking, asks: asksQueues, run: takeFrom(false)},
		{name: "qclaim", arity: -2, flags: write | flagBlocking, asks: asksQueues, run: takeFrom(true)},
		{name: "qack", arity: -4, flags: write, first: 1, last: 1, step: 1, elements: 2, per: 2, prepare: prepareIDs, run: qack},
		{name: "qnack", arity: -4, flags: write, first: 1, last: 1, step: 1, prepare: prepareIDs, run: qnack},
		{name: "qextend", arity: 5, flags: write | flagFast, first: 1, last: 1, step: 1, prepare: prepareIDs, run: qextend},
		{name: "qprogress", arity: -5, flags: write | flagFast, first: 1, last: 1, step: 1, prepare: prepareIDs, run: qprogress},
		{name: "qpeek", arity: -2, flags: read, first: 1, last: 1, step: 1, run: qpeek},
		{name: "qlist", arity: -2, flags: read, first: 1, last: 1, step: 1, run: qlist},
		{name: "qshow", arity: 3, flags: read, first: 1, last: 1, step: 1, prepare: prepareIDs, run: qshow},
		{name: "qdel", arity: -3, flags: write, first: 1, last: 1, step: 1, elements: 2, per: 1, packets: -1, right: access.Manage, prepare: prepareIDs, run: qdel},
		{name: "qmove", arity: -4, flags: write | flagAdds, first: 1, last: 1, step: 1, elements: 4, per: 1, packets: -3, right: access.Manage, asks: asksTo("to"), prepare: prepareIDs, run: qmove, form: moveForm},
		{name: "qprio", arity: 4, flags: write | flagAdds | flagFast, first: 1, last: 1, step: 1, packets: 2, right: access.Manage, prepare: prepareIDs, run: qprio},
		{name: "qpurge", arity: -2, flags: write | flagSlices, first: 1, last: 1, step: 1, right: access.Manage, run: qpurge},
		{name: "qharvest", arity: -2, flags: write | flagSlices, first: 1, last: 1, step: 1, right: access.Manage, run: qharvest},
		{name: "qredrive", arity: -2, flags: write | flagSlices, first: 1, last: 1, step: 1, right: access.Manage, asks: asksTo("to"), run: qredrive, form: redriveForm},
		{name: "qset", arity: -4, flags: write | flagCostly | flagAdds, first: 1, last: 1, step: 1, right: access.Manage, asks: asksTo("dead-letter"), run: qset},
		{name: "qget", arity: 2, flags: read | flagFast, first: 1, last: 1, step: 1, run: qget},
		{name: "qclose", arity: 2, flags: write | flagCostly | flagAdds | flagFast, first: 1, last: 1, step: 1, right: access.Manage, run: qclose},
		{name: "qdrop", arity: 2, flags: write, first: 1, last: 1, step: 1, right: access.Manage, run: qdrop},
		{name: "queues", arity: -1, flags: read, asks: asksMatch(1), run: queues},
		{name: "qlen", arity: 2, flags: read | flagFast, first: 1, last: 1, step: 1, run: qlen},
		{name: "qstat", arity: 2, flags: read, first: 1, last: 1, step: 1, run: qstat},
		{name: "qconsumers", arity: 2, flags: read, first: 1, last: 1, step: 1, run: qconsumers},
	}
}
