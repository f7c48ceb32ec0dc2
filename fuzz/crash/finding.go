package crash

import (
	"fmt"
	"slices"
	"sync"
)

// Kind says which promise was broken.
type Kind string

// The kinds of finding.
const (
	Lost       Kind = "lost"        // an acknowledged packet is gone and nobody took it
	Returned   Kind = "returned"    // a packet was handed out again
	Doubled    Kind = "doubled"     // an item is on the board more than once
	Order      Kind = "order"       // packets came in another order or grouping than promised
	Expired    Kind = "expired"     // a packet was handed out after its time to live
	Shared     Kind = "shared"      // a packet was claimed before the claim before it ended
	Attempts   Kind = "attempts"    // attempts were forgotten, or were never made
	Tokens     Kind = "tokens"      // a token did not rise, or was accepted when it was no longer good
	Early      Kind = "early"       // a packet came before its delay ended
	Unfit      Kind = "unfit"       // a claim got a packet that its filter does not accept
	Overfull   Kind = "overfull"    // a queue has more packets than its bound
	Dropped    Kind = "dropped"     // a full queue dropped a packet, and kept a worse one
	Excess     Kind = "excess"      // more was claimed at once than a limit allows, or taken than a rate
	Open       Kind = "open"        // a queue that is closed or paused took a packet, or opened by itself
	Counters   Kind = "counters"    // a counter is older than a second, or shows what nobody did
	Stuck      Kind = "stuck"       // a lease or a delay holds a packet for longer than was asked
	Corrupt    Kind = "corrupt"     // bytes that nobody pushed, or not to this queue
	Unanswered Kind = "unanswered"  // a clean stop left a request without its reply
	Logged     Kind = "logged"      // the server's own log names findings or errors
	NotStarted Kind = "not started" // the server did not start
	Died       Kind = "died"        // the server ended or hung up by itself
	Idle       Kind = "idle"        // too few operations: the run proves nothing
)

// Finding is one broken promise.
type Finding struct {
	Kind Kind
	Text string
}

func (f Finding) String() string { return string(f.Kind) + ": " + f.Text }

// maxFindings bounds what one run keeps. The first findings tell most.
const maxFindings = 100

// findings collects what all clients of a run find. Any goroutine may use it.
type findings struct {
	mu  sync.Mutex // guards what follows
	all []Finding
}

func (f *findings) report(kind Kind, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) < maxFindings {
		f.all = append(f.all, Finding{kind, fmt.Sprintf(format, args...)})
	}
}

// count is how many of them are of a kind.
func (f *findings) count(kind Kind) int {
	n := 0
	for _, found := range f.list() {
		if found.Kind == kind {
			n++
		}
	}
	return n
}

func (f *findings) list() []Finding {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all)
}
