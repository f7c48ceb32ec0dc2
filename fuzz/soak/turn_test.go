package soak

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// serveTurnClock prints the address at which the server tells the most processor time that one turn
// of its loop has taken, or "-" if nobody asks for that. The loop calls what it returns at the end
// of each turn.
func serveTurnClock() (turned func(), err error) {
	if os.Getenv(turnClock) == "" {
		fmt.Println("-")
		return nil, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	fmt.Println(l.Addr())
	var longest atomic.Int64
	go func() { // ends with the process
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, longest.Swap(0))
			_ = c.Close()
		}
	}()
	last := time.Duration(-1)
	return func() {
		if last < 0 {
			runtime.LockOSThread() // for as long as the loop runs
		}
		var at unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
			panic(err)
		}
		now := time.Duration(at.Nano())
		if took := int64(now - last); last >= 0 && took > longest.Load() {
			longest.Store(took) // it may be the last turn before it is asked for: that one counts, too
		}
		last = now
	}, nil
}

// longestTurn is the most processor time that one turn of the loop has taken since the last call.
func (s *server) longestTurn() (took time.Duration, err error) {
	c, err := net.Dial("tcp", s.clock)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	_, err = fmt.Fscan(c, &took)
	return took, err
}
