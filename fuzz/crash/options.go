package crash

import "time"

// Options say what a run does. Zero values mean the defaults.
type Options struct {
	Command      Command // how the server is started
	Data         string  // its data folder
	Cycles       int     // how often it is loaded and ended; 3
	Seed         uint64  // of all that is random, except the machine's own timing
	Workers      int     // clients that push and pop; 13, and None for none
	Subscribers  int     // clients that subscribe; 3, and None for none
	BoardClients int     // clients of the board; 0, and then the server needs no board

	SlowEvery int // in one of so many cycles a client reads a backup slowly; with 0 in none, and then the server needs no admin port

	MinLoad, MaxLoad time.Duration // how long the server lives under load; 200 ms and 2 s
	DrainEvery       int           // the shared queues are emptied and checked every so many cycles; 4
	MinRate          float64       // operations a second under load, below which the run is a failure
	MinBoardRate     float64       // the same of the board
	KillsOnly        bool          // no clean stops
	StopAtFinding    bool          // end the run with the first cycle that finds something

	Logf func(format string, args ...any)
}

// None is the number of clients of a kind that a run does without.
const None = -1

func (o *Options) setDefaults() {
	set := func(v *int, def int) {
		switch *v {
		case 0:
			*v = def
		case None:
			*v = 0
		}
	}
	set(&o.Cycles, 3)
	set(&o.Workers, 13)
	set(&o.Subscribers, 3)
	set(&o.DrainEvery, 4)
	if o.MinLoad == 0 {
		o.MinLoad = 200 * time.Millisecond
	}
	if o.MaxLoad == 0 {
		o.MaxLoad = 2 * time.Second
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
}

// Result is what a run has done and found.
type Result struct {
	Cycles   int
	Kills    int // ends without a warning
	Stops    int // clean ends
	Kept     int // ends that left a log which the server kept for a reader
	Ops      int64
	BoardOps int64
	Load     time.Duration
	Findings []Finding // the first hundred
}

// Rate is operations a second under load: acknowledged pushes, pops that gave packets, deliveries.
func (r Result) Rate() float64 { return float64(r.Ops) / max(r.Load.Seconds(), 1e-3) }

// BoardRate is operations of the board a second: acknowledged updates, items handed out.
func (r Result) BoardRate() float64 { return float64(r.BoardOps) / max(r.Load.Seconds(), 1e-3) }
