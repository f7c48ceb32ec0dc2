package resp

import "github.com/holdfast-queue/holdfast/netproto/access"

// The work queue: packets that are claimed, and acknowledged or returned. Their commands are
// Holdfast's own. Times are in milliseconds.

func workCommands() []command {
	const read, write = flagRead, flagWrite
	return []command{
		{name: "qpush", flags: write | flagAdds | flagPayload | flagBlocking | flagFast, prepare: prepareTwin, run: qpush},
		{name: "qmpush", flags: write | flagAdds | flagPayload | flagBlocking, elements: 3, per: 1, run: qmpush},
		{name: "qload", flags: write | flagAdds | flagPayload | flagFast, right: access.Push | access.Manage, asks: asksOrigin, run: qload},
		{name: "qpop", flags: write | flagBlocking, asks: asksQueues, run: takeFrom(false)},
		{name: "qclaim", flags: write | flagBlocking | flagClaims, asks: asksQueues, run: takeFrom(true)},
		{name: "qack", flags: write, elements: 2, per: 2, prepare: prepareIDs, run: qack},
		{name: "qnack", flags: write, prepare: prepareIDs, run: qnack},
		{name: "qextend", flags: write | flagFast, prepare: prepareIDs, run: qextend},
		{name: "qprogress", flags: write | flagFast, prepare: prepareIDs, run: qprogress},
		{name: "qpeek", flags: read, run: qpeek},
		{name: "qlist", flags: read, run: qlist},
		{name: "qshow", flags: read, prepare: prepareIDs, run: qshow},
		{name: "qdel", flags: write, elements: 2, per: 1, packets: -1, right: access.Manage, prepare: prepareIDs, run: qdel},
		{name: "qcancel", flags: write, elements: 2, per: 1, packets: -1, right: access.Manage, prepare: prepareIDs, run: qcancel},
		{name: "qmove", flags: write | flagAdds, elements: 4, per: 1, packets: -3, right: access.Manage, asks: asksFirst, prepare: prepareIDs, run: qmove, form: moveForm},
		{name: "qprio", flags: write | flagAdds | flagFast, packets: 2, right: access.Manage, prepare: prepareIDs, run: qprio},
		{name: "qrun", flags: write | flagAdds | flagFast, packets: 2, right: access.Manage, prepare: prepareIDs, run: qrun},
		{name: "qpurge", flags: write | flagSlices, right: access.Manage, run: qpurge},
		{name: "qharvest", flags: write | flagSlices, right: access.Manage, run: qharvest},
		{name: "qredrive", flags: write | flagSlices, right: access.Manage, asks: asksFirst, run: qredrive, form: redriveForm},
		{name: "qset", flags: write | flagCostly | flagAdds, sets: true, right: access.Manage, asks: asksFirst, run: qset},
		{name: "qpause", flags: write | flagCostly | flagAdds, sets: true, right: access.Manage, run: qpause},
		{name: "qshare", flags: write | flagCostly | flagAdds, sets: true, right: access.Manage, run: qshare},
		{name: "qget", flags: read | flagFast, run: qget},
		{name: "qclose", flags: write | flagCostly | flagAdds | flagFast, right: access.Manage, run: qclose},
		{name: "qdrop", flags: write, right: access.Manage, run: qdrop},
		{name: "queues", flags: read, asks: asksSome, run: queues},
		{name: "qlen", flags: read | flagFast, run: qlen},
		{name: "qstat", flags: read, run: qstat},
		{name: "qconsumers", flags: read, run: qconsumers},
		{name: "qshares", flags: read, run: qshares},
		{name: "qproducers", flags: read, run: qproducers},
	}
}
