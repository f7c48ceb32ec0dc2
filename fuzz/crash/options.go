package crash

import (
	"cmp"
	"time"
)

// Options say what a run does. Zero values mean the defaults.
type Options struct {
	Command      Command // how the server is started
	Data         string  // its data folder
	Cycles       int     // how often it is loaded and ended; 3
	Seed         uint64  // of all that is random, except the machine's own timing
	BoardClients int     // clients of the board; with 0 the server needs no board
	RedisClients int     // clients of the Redis protocol; with 0, and no TaskClients, the server needs no port for it
	TaskClients  int     // clients of the work queue, through the same port
	NoPinpriq    bool    // no clients of pinpriq

	SlowEvery int // in one of so many cycles a client reads a backup slowly; with 0 in none, and then the server needs no admin port

	MinLoad, MaxLoad time.Duration      // how long the server lives under load; 200 ms and 2 s
	LeastOps         int64              // operations that a load has, however long they take, up to a minute
	DrainEvery       int                // the shared queues are emptied and checked every so many cycles; 4
	MinRates         [loadKinds]float64 // operations a second under load, below which the run is a failure
	KillsOnly        bool               // no clean stops
	StopAtFinding    bool               // end the run with the first cycle that finds something

	// Disturb makes something fail in the server of a process id, from the beginning of a load until
	// it is called again. The server may then end with exit code 1; if not, it must still serve.
	Disturb func(pid int) (end func(), err error)

	Logf func(format string, args ...any)
}

// The clients of the queues: those that push and pop, and those that subscribe.
const (
	workers     = 13
	subscribers = 3
)

func (o *Options) setDefaults() {
	o.Cycles = cmp.Or(o.Cycles, 3)
	o.DrainEvery = cmp.Or(o.DrainEvery, 4)
	o.MinLoad = cmp.Or(o.MinLoad, 200*time.Millisecond)
	o.MaxLoad = cmp.Or(o.MaxLoad, 2*time.Second)
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
}

// Result is what a run has done and found.
type Result struct {
	Cycles   int
	Kills    int // ends without a warning
	Stops    int // clean ends
	Ops      [loadKinds]int64
	Load     time.Duration
	Findings []Finding // the first hundred
}

// Rate is operations a second under load.
func (r Result) Rate(p loadKind) float64 { return float64(r.Ops[p]) / max(r.Load.Seconds(), 1e-3) }

// loadKind is a part of the load.
type loadKind int

const (
	ofPinpriq loadKind = iota // its operations are acknowledged pushes, pops that gave packets, deliveries
	ofBoard                   // acknowledged updates, items handed out
	ofRedis                   // answered commands
	ofTasks                   // answered commands of the work queue
	loadKinds
)

func (p loadKind) String() string {
	return [...]string{"pinpriq", "the board", "the Redis protocol", "the work queue"}[p]
}
