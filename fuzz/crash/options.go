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

	MinLoad, MaxLoad time.Duration // how long the server lives under load; 200 ms and 2 s
	DrainEvery       int           // the shared queues are emptied and checked every so many cycles; 4
	MinRate          float64       // operations a second under load, below which the run is a failure
	MinBoardRate     float64       // the same of the board
	MinRedisRate     float64       // the same of the Redis protocol
	MinTaskRate      float64       // the same of the work queue
	KillsOnly        bool          // no clean stops
	StopAtFinding    bool          // end the run with the first cycle that finds something

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
	Kept     int // ends that left a log which the server kept for a reader
	Ops      int64
	BoardOps int64
	RedisOps int64
	TaskOps  int64
	Load     time.Duration
	Findings []Finding // the first hundred
}

// Rate is operations a second under load: acknowledged pushes, pops that gave packets, deliveries.
func (r Result) Rate() float64 { return float64(r.Ops) / max(r.Load.Seconds(), 1e-3) }

// BoardRate is operations of the board a second: acknowledged updates, items handed out.
func (r Result) BoardRate() float64 { return float64(r.BoardOps) / max(r.Load.Seconds(), 1e-3) }

// RedisRate is answered commands of the Redis protocol a second under load.
func (r Result) RedisRate() float64 { return float64(r.RedisOps) / max(r.Load.Seconds(), 1e-3) }

// TaskRate is answered commands of the work queue a second under load.
func (r Result) TaskRate() float64 { return float64(r.TaskOps) / max(r.Load.Seconds(), 1e-3) }
