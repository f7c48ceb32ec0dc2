// Package crash loads a real server, kills it at random moments, starts it again on the same
// folder and holds what it finds against a ledger of what the clients were promised.
//
// Its map, one noun per file:
//
//	harness.go     Run: the cycles
//	server.go      the server process: start, kill, terminate, its log
//	traffic.go     the queues of the load, and who does what to them
//	worker.go      a connection that pushes and pops; subscriber.go: one that subscribes
//	drain.go       emptying queues after a restart
//	model.go       what one connection's own queues must hold, exactly
//	ledger.go      what may and must be in the queues that connections share
//	judge.go       the comparison; finding.go: what it can find
//	identity.go    payloads that prove themselves
//
// Two oracles work side by side. A queue that only one connection uses is modelled exactly: the
// server carries out a connection's requests in order, so after a crash its queues must be as
// they were after some beginning of what was sent, at least as long as what was answered. Queues
// that connections share are judged packet by packet with three states: never sent, maybe there
// (sent and not acknowledged), and acknowledged. A pop whose reply never came may or may not have
// taken one group; how many there were is counted, and no more than that may be missing.
package crash
