package storage

// Settings are what a queue does with packets that are claimed. Times are in milliseconds.
type Settings struct {
	MaxAttempts uint32 // claims after which a packet that comes back is dead; 0: without end
	Lease       int64  // of a claim that asks for none
	BackoffMin  int64  // before the second attempt; doubled for each one after it
	BackoffMax  int64
	DeadLetter  []byte // the queue that dead packets move to; empty: they stay
	Retain      int64  // how long a packet that was acknowledged stays visible; 0: it goes at once
}

// Counters are what a queue has done since it was made. They do not run backwards over a restart
// but by what was counted in the second before a kill.
type Counters struct {
	Pushed, Popped, Acked, Nacked, Expired, Dead uint64
}
