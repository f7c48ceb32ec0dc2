package planted

import "slices"

// serverBugs are those above the store: in the broker, its index, and the doors to it.
func serverBugs() []Bug {
	return slices.Concat(
		keyspaceBugs(), listBugs(), waitBugs(), watchBugs(),
		uniqueBugs(), filterBugs(), boundBugs(), claimBugs(),
		startBugs(), shareBugs(), limitBugs(), strictBugs(),
		groupBugs(), cursorBugs(), respBugs(), eventBugs(),
	)
}

// keyspaceBugs are of strings, hashes, names, expiries and databases.
func keyspaceBugs() []Bug {
	return []Bug{
		{"a string that is set anew keeps its expiry", "../broker/strings.go", "fuzz/sim TestSimulation -sim.seed=1",
			"m.names.SetExpiry(k, expiry)\n", "if expiry != 0 {\n\t\tm.names.SetExpiry(k, expiry)\n\t}\n"},
		{"a patch takes the expiry from a string", "../broker/strings.go", "fuzz/sim TestSimulation -sim.seed=1",
			"m.patched = patch(", "m.names.SetExpiry(k, 0)\n\tm.patched = patch("},
		{"a renamed string loses its expiry", "../index/keyspace/directory.go", "fuzz/sim TestSimulation -sim.seed=12",
			"value.fields\n\td.SetExpiry(e, value.expiry)", "value.fields"},
		{"a renamed string is not written", "../broker/names.go", "fuzz/sim TestSimulation -sim.seed=1",
			"m.putHead(e)\n\t\tm.changedName(e)", "m.changedName(e)"},
		{"a name lasts a millisecond too long", "../broker/names.go", "",
			"e.Expiry() <= m.tx.now {\n\t\tm.deleteNamed", "e.Expiry() < m.tx.now {\n\t\tm.deleteNamed"},
	}
}

// listBugs are of queues seen as lists, and of those that go or change their name.
func listBugs() []Bug {
	return []Bug{
		{"LSET takes the element's expiry", "../broker/list.go", "",
			"Expiry: p.Expiry, EnqueuedAt: tx.now}, tx.now)", "EnqueuedAt: tx.now}, tx.now)"},
		{"LSET counts for the bound as what comes new", "../broker/list.go", "broker TestAValueGrowsWithinTheBoundOnly",
			"bytes: int64(len(value)) - int64(p.Size)}", "bytes: int64(len(value))}"},
		{"LSET beyond the bound of packets is refused", "../broker/bound.go", "broker TestAValueGrowsWithinTheBoundOnly",
			"if more == 0 {", "if more < 0 {"},
		{"LINSERT moves one element too few", "../broker/reshape.go", "broker TestInsertMovesTheElementsOfTheShorterSide",
			"n.end, from, count = Oldest, at, min(length-at, maxMoved)", "n.end, from, count = Oldest, at+1, min(length-at-1, maxMoved)"},
		{"LINSERT turns the elements around that it moves", "../broker/reshape.go", "broker TestInsertMovesTheElementsOfTheShorterSide",
			"n.moved = m.elements(q, from, count); n.end == Newest", "n.moved = m.elements(q, from, count); n.end == Oldest"},
		{"LREM from the right takes from the left", "../broker/list.go", "broker TestListsDoWhatTheModelDoes",
			"value, end, Place{}, max)", "value, Newest, Place{}, max)"},
		{"LTRIM takes the way back from the dead (B8)", "../broker/reshape.go", "broker TestATrimLeavesItsDeadTheirWayBack",
			" && !m.isOrigin(q)", ""},
		{"LTRIM deletes everything in one turn (H1)", "../broker/reshape.go", "broker TestALongTrimEndsWithItsQueue",
			"if c != nil && gone > trimSlice {", "if c != nil && gone < 0 {"},
		{"LMOVE into a new list passes its enum (B8)", "../broker/list.go", "broker TestAMoveIntoANewQueueObeysItsEnum",
			"other, err := m.makeQueue(to)", "other, err := m.queueNamed(to), error(nil)\n\tif other == nil {\n\t\tother = q\n\t}"},
		{"only what is next goes with a queue (B1)", "../broker/drop.go", "broker TestAQueueEndsWithAllThatItHolds",
			"m.remains(q, dropAtOnce), EventDeleted)\n\t\tif m.holdsNothing(q) {", "m.ix.Next(q.ix, index.Selection{}, 0, dropAtOnce, nil), EventDeleted)\n\t\tif true {"},
	}
}

// waitBugs are of those who wait: who is first in line, what wakes them, and their roles.
func waitBugs() []Bug {
	return []Bug{
		{"the line of a name is turned around", "../index/dispatch.go", "broker TestAPacketThatComesBackToAClosedQueueIsDelivered",
			"d.since(n.listPrev) > d.since(id)", "d.since(n.listPrev) < d.since(id)"},
		{"who got a delivery stays the first in line", "../index/dispatch.go", "index TestDispatchDoesWhatTheNaiveModelDoes",
			"if u.credits > 1 && !u.paused {", "if u.credits > 2 && !u.paused {"},
		{"of two classes the first that came is asked first", "../index/dispatch.go", "index TestWaitListRules",
			"if len(lines) > 1 {", "if len(lines) > 2 {"},
		{"who waits for its own comes before who waits longer", "../index/dispatch.go", "index TestDispatchDoesWhatTheNaiveModelDoes",
			"d.since(lines[0].first) < first.since", "d.since(lines[0].first) > first.since"},
		{"a class whose first has left keeps its place in line", "../index/lines.go", "index TestDispatchDoesWhatTheNaiveModelDoes",
			"if k.since = since; k.place > 0 {", "if k.since = since; k.place > 1 {"},
		{"a connection that has shut down takes for nobody", "../netproto/conn.go", "",
			"if c.hungUp || c.phase > open {\n\t\t\terr", "if c.hungUp || c.phase == draining {\n\t\t\terr"},
		{"a reply leaves before its batch where a listener has died", "../netproto/loop.go", "netproto/resp TestWhileABatchFindsNoRoomWhatTouchesNoDataIsAnsweredAtOnce",
			"c.send()\n\t\tc.watch()\n\t}", "c.send()\n\t\tc.watch()\n\t\t_ = l.tx.Atomic(func() error { return nil })\n\t\tfor o := range l.conns {\n\t\t\to.free = o.length()\n\t\t}\n\t}"},
	}
}

// watchBugs are of WATCH and of transactions.
func watchBugs() []Bug {
	return []Bug{
		{"a delayed packet that is ready breaks no watch (B8)", "../broker/due.go", "broker TestADelayedPacketThatBecomesReadyBreaksAWatch",
			"m.tail(q, e.Packet, EventReady)\n\t\tm.changed(q)", "m.tail(q, e.Packet, EventReady)\n\t\tm.mark(q.waiters)"},
		{"a watched name that is just over is there", "../broker/watch.go", "broker TestWatchSeesAnExpiryThatIsNotCarriedOutYet",
			"e.Expiry() <= tx.now", "e.Expiry() < tx.now"},
		{"a change in any database breaks the watch of database 0", "../broker/watch.go", "netproto/resp TestRepliesAreThoseOfRedis",
			"watched{e.Database(), e.Name()}", "watched{0, e.Name()}"},
		{"a flush breaks no watch of the last database", "../broker/watch.go", "",
			"c.watchesIn>>from<<from<<(Databases-1-to) != 0", "c.watchesIn>>from<<from<<(Databases-to) != 0"},
		{"UNWATCH leaves a watch broken", "../broker/watch.go", "broker TestADelayedPacketThatBecomesReadyBreaksAWatch",
			"c.watched, c.watchesIn, c.watchBroken = nil, 0, false", "c.watched, c.watchesIn = nil, 0"},
	}
}

// uniqueBugs are of unique pushes, their windows, and those that replace.
func uniqueBugs() []Bug {
	return []Bug{
		{"an id is held by what has expired (B2)", "../broker/due.go", "broker TestAnExpiredPacketIsNotReplaced",
			"e, due := m.ix.AdvanceHolder(q.ix, unique, m.tx.now, m.tx.steady)", "e, due := index.Event{}, false"},
		{"a window lasts a millisecond too long", "../broker/once.go", "",
			"tx.now+r.Window, id)", "tx.now+r.Window+1, id)"},
		{"an id until a claim is held behind it", "../broker/unique.go", "broker TestAPacketThatMovesFreesItsIDWhenItIsClaimedAlsoAfterARestart",
			"m.endUnique(q, p.Identity)\n\t\tm.ix.FreeUnique(p.ID)", "m.endUnique(q, p.Identity)"},
		{"an id until a claim is not freed on disk", "../broker/unique.go", "fuzz/sim TestSimulation -sim.seed=25",
			"m.endUnique(q, p.Identity)\n\t\tm.ix.FreeUnique(p.ID)", "m.ix.FreeUnique(p.ID)"},
		{"an id does not move on disk", "../broker/unique.go", "fuzz/sim TestSimulation -sim.seed=10",
			"\t\tm.putUnique(to, p.Identity, m.unique(p), p.UntilClaim)\n", ""},
		{"of two packets with one identity both hold the id (B7)", "../index/uniques.go", "index TestOfTwoPacketsWithOneIdentityOneHasTheID",
			"if !x.forest.Insert(&u.tree, tree.Place{Priority: g, Seq: x.identity(id, e)}, id) {\n\t\tx.freeUnique(id, e)\n\t}", "x.mustInsert(&u.tree, tree.Place{Priority: g, Seq: x.identity(id, e)}, id)"},
	}
}

// filterBugs are of tags, filters and the orders of enums.
func filterBugs() []Bug {
	return []Bug{
		{"le is lt", "../broker/filter.go", "",
			"return c <= 0", "return c < 0"},
		{"a value that is not in the order is below all", "../broker/filter.go", "broker TestADeclaredOrderSaysWhatIsLess",
			"rank != 0 && t.rank != 0 &&", "t.rank != 0 &&"},
		{"terms stay in the order of the request", "../broker/filter.go", "broker TestAFilterMatchesWhatItsTermsSay",
			"\tslices.SortStableFunc(c.terms, func(a, b queueTerm) int { return cmp.Compare(a.Tag, b.Tag) })\n", ""},
		{"of two terms for a tag one is asked", "../broker/filter.go", "broker TestAFilterMatchesWhatItsTermsSay",
			"(!at || name < t.Tag)", "(!at || name <= t.Tag)"},
		{"an order is turned around", "../broker/tags.go", "broker TestADeclaredOrderSaysWhatIsLess",
			"o[v] = i + 1", "o[v] = len(declared.Values) - i"},
	}
}

// boundBugs are of bounds, and of pushes that drop what is worse.
func boundBugs() []Bug {
	return []Bug{
		{"a queue is full with one packet too few", "../broker/bound.go", "broker TestABoundBelowWhatIsQueuedLetsItDrain",
			"int64(packets) > s.Bound", "int64(packets) >= s.Bound"},
		{"a push that drops the only packet ends the expiry", "../broker/bound.go", "broker TestAQueueThatDropsItsOnlyPacketKeepsItsExpiry",
			"m.dropBefore(q, m.worst, EventDropped)", "m.dropNow(q, m.worst, EventDropped)"},
		{"delayed packets that move take no room", "../broker/bound.go", "broker TestAPacketThatDiesStaysWhereTheDeadLetterQueueIsFull",
			"if p.State <= index.Claimed {", "if p.State == index.Ready {"},
		{"a push drops its equals", "../broker/bound.go", "broker TestAFullQueueDropsItsWorstPackets",
			"if p.Priority-1 <= l.priority-1 ||", "if p.Priority-1 < l.priority-1 ||"},
		{"a push drops no delayed packet", "../index/worst.go", "broker TestAFullQueueDropsItsWorstPackets",
			"\t\t\trest.open(a.tree(Delayed))\n", ""},
	}
}

// eventBugs are of what those who tail a queue are told.
func eventBugs() []Bug {
	return []Bug{
		{"an acknowledgement is not told", "../broker/claim.go", "fuzz/sim TestSimulation -sim.seed=1",
			"\tm.tail(q, p, EventAcked)\n", ""},
		{"a packet is told to arrive where it left", "../broker/move.go", "fuzz/sim TestSimulation -sim.seed=2",
			"m.tail(to, there, EventArrived)", "m.tail(q, there, EventArrived)"},
		{"a queue that goes at once is not told", "../broker/drop.go", "fuzz/sim TestSimulation -sim.seed=1",
			"\t\tm.tell(q, Event{Kind: EventPurged, Tail: true})\n", "\t\t_ = q\n"},
	}
}
