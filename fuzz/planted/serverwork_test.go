package planted

// claimBugs are of claims and their ends, and of verbs for many packets.
func claimBugs() []Bug {
	return []Bug{
		{"a packet has one attempt more", "../broker/return.go", "broker TestAClosedQueueRefusesWhatComesForEver",
			"int64(d.Attempts) >= most", "int64(d.Attempts) > most"},
		{"an answer of a claim of before is taken", "../broker/claim.go", "broker TestAClaimEndsWithItsLease",
			"if d.Token-middle != uint64(r.Token) {", "if d.Token < uint64(r.Token) {"},
		{"the first attempt counts though it is not to", "../broker/return.go", "broker TestAShareRestsAfterHold",
			"if n.Uncounted && d.Attempts > 0 {", "if n.Uncounted && d.Attempts > 1 {"},
		{"a queue that had a death is never forgotten (B8)", "../broker/queue.go", "broker TestAQueueOfTheDeadIsForgottenWithTheLastOfThem",
			"return m.ix.IsOrigin(q.id) && m.queues.origins[q.id] == q", "return q.counters.Dead > 0 && len(settingsOf(q).DeadLetter) > 0"},
		{"a queue whose dead are gone is not let go", "../broker/machine.go", "",
			"\tm.leaveOrigins()\n", ""},
		{"HOLD is refused on a full disk (B8)", "../broker/return.go", "broker TestAHoldNeedsNoRoomAndNoSettings",
			"return tx.pause(name, false, tx.now+ms)", "return tx.Pause(name, false, tx.now+ms)"},
		{"a COST blocks a share for a lifetime (B8)", "../broker/claim.go", "broker TestACostThatARateCannotPayInAYearIsRefused",
			"if wait > maxCostTime {", "if wait > maxCostTime && r.Cost < 0 {"},
		{"of many packets that expire together some are taken", "../broker/pop.go", "broker TestATakeInStrictOrderLooksAtABoundedNumberForWhatHasExpired",
			"left := maxExpired\n", "left, over := maxExpired, m.selectPackets(q, s, selection, 0)\n\tif len(over) > 0 && m.ix.Counts(q.ix).Ready > 1000 {\n\t\treturn over[:fitting(over, MaxGroupBytes, weight)], nil\n\t}\n"},
	}
}

// startBugs are of what a start, verify and load make of a folder or a dump.
func startBugs() []Bug {
	return []Bug{
		{"a packet moves to the place of its damaged twin (B7)", "../broker/move.go", "broker TestAPacketDoesNotTakeThePlaceOfItsTwinInOneQueue",
			"if m.ix.Counts(to.ix).Damaged > 0 && m.hasDamaged(to, id) {", "if false {"},
		{"a start takes two packets with one number (B7)", "../recovery/recovery.go", "recovery TestOfTwoPacketsWithOneIdentityTheFirstHasTheDeliveryState",
			"!q.dropped && !r.numbers.Add(id.Seq, cmp.Or(m.Identity, id.Seq))", "false"},
		{"verify passes over two packets with one number (B7)", "../recovery/verify/packets.go", "recovery/verify TestEachHarmIsAFinding",
			"if !v.numbers.Add(id.Seq, identity) {", "if false {"},
		{"a dump with two packets of one number is loaded (B7)", "../recovery/dump/check.go", "recovery/dump TestBadDumpIsRefusedWithTheLineThatIsWrong",
			"c.numbers.Taken(uint64(r.Sequence), uint64(identity)) {", "false {"},
		{"what had expired at a start stays on disk (C1)", "../recovery/recovery.go", "recovery TestAnExpiredPacketStaysWithItsWorkerUntilTheLeaseEnds",
			"\t\tr.expired(id)\n", ""},
		{"a queue goes before what had expired in it (C1)", "../broker/expired.go", "broker TestWhatHadExpiredAtAStartIsDeletedAndItsQueueStaysUntilThen",
			"if found.Queue != 0 {", "if false {"},
		{"the time of batches never runs back (C6)", "store.go", "storage TestTheTimeOfBatchesRunsBackWhereAStartSaysSo",
			"s.control.Time-now > Jump.Milliseconds() {", "s.control.Time-now > Jump.Milliseconds() && now < 0 {"},
		{"waits that a start makes shorter are not written (C6)", "../broker/machine.go", "cmd/daemon TestRestsAreAsLongAsTheyWereAfterAClockThatWasAhead",
			"if m.behind > storage.Jump.Milliseconds() {\n\t\tm.keepWaits(state.Queues)\n\t}\n", ""},
		{"a table that another one has replaced is sound", "tables/table.go", "storage/tables TestEveryFlippedBitOfATableIsFound",
			"if sum.Sum64() != f.Sum {", "if false {"},
	}
}

// shareBugs are of the turns of shares.
func shareBugs() []Bug {
	return []Bug{
		{"the clock of turns runs back", "../index/turns.go", "",
			"sh.clock = max(sh.clock, s.pass)", "sh.clock = s.pass"},
		{"of equal shares the one served last is next", "../index/turns.go", "index TestATakeWithAFilterMovesNoShare",
			"return a.turn < b.turn", "return a.turn > b.turn"},
		{"a look ahead does not count claims", "../index/turns.go", "broker TestAShareThatHoldsClaimsWaitsForTheOthersAfterAStart",
			"\th.held = h.gate.claimed / of.weight\n", ""},
		{"a share keeps its place when its pass is another", "../index/turns.go", "index TestAClockThatBeginsAnewKeepsTheHeaps",
			"} else if (*heap)[s.pos-1] != head {", "} else if (*heap)[s.pos-1].held != head.held {"},
		{"a clock of turns that begins anew leaves the order (B8)", "../index/turns.go", "index TestAClockThatBeginsAnewKeepsTheHeaps",
			"heap[i].pass = heap[i].share.pass\n\t\t}\n\t\theap.Build()", "heap[i].pass = heap[i].share.pass\n\t\t}"},
	}
}

// limitBugs are of limits, rates and costs.
func limitBugs() []Bug {
	return []Bug{
		{"a burst is one take more", "../index/gate.go", "index TestAFilterThatTakesNothingIsNotAskedAnewAtALimit",
			"switch left := now + (g.burst-1)*g.gap +", "switch left := now + g.burst*g.gap +"},
		{"the due of a slow rate of a share is not kept", "../broker/machine.go", "broker TestAStartKnowsCostsAndChangesOfASlowRate",
			"\t\t\t\ts.Due, s.DueGap = due.At, due.Gap\n", "\t\t\t\ts.DueGap = due.Gap\n"},
		{"a start forgets the due of a slow rate", "../index/gate.go", "broker TestAStartMakesNoDueLonger",
			"\t\tslow = g.goOn(d, now)\n", ""},
		{"a COST tells nobody that its share stopped (B8)", "../index/meters.go", "index TestAChargeTellsThatAShareGivesAgain",
			"x.note(u, s)\n\t}\n\tx.followLimits(u, s)", "x.note(u, s)\n\t}\n\tx.placeShare(u, s)"},
		{"rules go while their timer runs (B8)", "../index/queue.go", "index TestRulesThatGoLeaveNothingToWaitFor",
			" && r.told == 0 {", " {"},
	}
}

// strictBugs are of strict order.
func strictBugs() []Bug {
	return []Bug{
		{"a dead packet holds its key for nobody", "../index/strict.go", "broker TestADeadPacketHoldsItsKeyWhereTheQueueSaysSo",
			" || e.state == Dead && st.deadHolds)", ")"},
		{"a packet that waits for its next attempt lets its key go", "../index/strict.go", "index TestAKeyOfManyPacketsComesInOrder",
			"e.state == Delayed && x.Delivery(ID(id)).Token != 0 || ", ""},
		{"a key is held by two packets, not by one", "../index/strict.go", "index TestAShareGivesWhatWaitedOnceTheOrderEnds",
			"if st.held[group] > 0 {\n\t\tfirst", "if st.held[group] > 1 {\n\t\tfirst"},
		{"who waits is not told of the next of a key", "../index/strict.go", "index TestSharesTakeTurnsAsTheModelSays",
			"if x.twinChanged(u, l.twin); u.fresh != nil {", "if x.twinChanged(u, l.twin); u.fresh != nil && e.group == 0 {"},
		{"strict order that is set forgets what is claimed", "../index/strict.go", "index TestLargeGroupsAreInStrictOrderAsTheModelSays",
			"\t\tx.move(ids, func(_ uint32, e *entry) { x.followKey(e) }) // what holds their keys is known\n", ""},
	}
}

// groupBugs are of groups, and of the doors pinpriq and barbershop.
func groupBugs() []Bug {
	return []Bug{
		{"a pinpriq pop is cut at what a transaction may change (M1)", "../broker/pop.go", "netproto/pinpriq TestAPopTakesAWholeGroup",
			"if !s.Group || s.Count > 0 { //", "if true { //"},
		{"a pop of narrow packets takes the wide ones of its key", "../index/groups.go", "index TestNarrowRules",
			"id != except && !(narrow && x.lanes.At(uint32(e.lane)).wide) {", "id != except {"},
		{"of a large group the narrow packets come first", "../index/groups.go", "",
			"next.Done() || !w.wide.Done() && Newest.Earlier(w.wide.Place(), next.Place()) {", "next.Done() {"},
		{"a large group ends while wide packets are in it", "../index/groups.go", "index TestNarrowRules",
			"if l.narrow.Count+l.wide.Count == 0 {", "if l.narrow.Count == 0 {"},
		{"a score that grows costs a packet its tags", "../broker/priority.go", "",
			" && p.TagBytes == 0", ""},
	}
}

// cursorBugs are of looks that go on in slices.
func cursorBugs() []Bug {
	return []Bug{
		{"LRANGE gives what came since", "../broker/list.go", "broker TestALookGoesOnBehindTheSameElementWhateverAnInsertionMoves",
			"found = slices.DeleteFunc(found[:upto], c.isNew)", "found = found[:upto]"},
		{"a look does not follow a single element that moves", "../broker/cursor.go", "broker TestALookGoesOnBehindTheSameElementWhateverAnInsertionMoves",
			"if n := len(passed); n > 0 {", "if n := len(passed); n > 1 {"},
		{"the end of a look does not follow", "../broker/cursor.go", "broker TestALookGoesOnBehindTheSameElementWhateverAnInsertionMoves",
			"{&c.after, &c.last, &c.then}", "{&c.after, &c.then}"},
		{"QLIST passes over what a page has no room for", "../broker/inspect.go", "",
			"\t\tend.Last = fit[end.Packets-1].Place()\n", "\t\tend.Last.Shape = 0\n"},
	}
}

// respBugs are of the requests of Redis clients.
func respBugs() []Bug {
	return []Bug{
		{"a skipped request that is cut amid a line break ends the server", "../netproto/resp/wire/parser.go", "netproto/resp/wire TestAStreamWithRefusedRequestsReadsAsItDoesWholeWhereverItIsCut",
			"if wanted && p.refused == \"\" {", "if wanted {"},
		{"the longest payload is refused", "../netproto/resp/wire/parser.go", "netproto/resp/wire TestAnAnnouncedLengthTakesNoMemory",
			"case n > most:", "case n >= most:"},
		{"QACK of several refuses one that is late", "../netproto/resp/claim.go", "netproto/resp TestClaimsAreGivenOutInOrderAndOnlyOnce",
			"(len(receipts) == 1 || ", "(len(receipts) > 0 || "},
	}
}
