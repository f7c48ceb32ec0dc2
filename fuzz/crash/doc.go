// Package crash loads a real server, kills it at random moments, starts it again on the same
// folder and holds what it finds against a ledger of what the clients were promised.
//
// Its map, one noun per file:
//
//	harness.go     Run: the cycles
//	server.go      the server process: start, kill, terminate, its log
//	traffic.go     the queues of the load, and who does what to them
//	worker.go      a connection that pushes and pops; subscriber.go: one that subscribes
//	reader.go      a client that reads a backup slowly until the end; heldlog.go: the log that it keeps
//	drain.go       emptying queues after a restart
//	barber.go      a connection to the board of barbershop
//	model.go       what one connection's own queues must hold, exactly
//	ledger.go      what may and must be in the queues that connections share
//	board.go       what may and must be on the board
//	lostnexts.go   what requests without a reply may have taken off the board
//	judge.go       the comparison; boardjudge.go: that of the board; finding.go: what they can find
//	identity.go    payloads that prove themselves
//
// Three oracles work side by side. A queue that only one connection uses is modelled exactly: the
// server carries out a connection's requests in order, so after a crash its queues must be as
// they were after some beginning of what was sent, at least as long as what was answered. Queues
// that connections share are judged packet by packet with three states: never sent, maybe there
// (sent and not acknowledged), and acknowledged. A pop whose reply never came may or may not have
// taken one group; how many there were is counted, and no more than that may be missing.
//
// The items of the board are judged by their scores: each item is updated by one connection, so its
// score must be the sum of that connection's updates up to some moment not before the last answered
// one, from the first that came after the item was last handed out. Where requests overlapped, either
// order is allowed. An item may be handed out again only if an update came in between. A request for the
// next item whose reply never came may have taken one, if it was carried out: no item that is still there
// may surely have stood above that one.
package crash
