package main

import (
	"os"
	"time"
)

// oneSignal is how long signals count as one. timeout(1) signals a command and then its group, so
// the command gets two.
const oneSignal = 500 * time.Millisecond

// obey calls stop at the first signal, and end at a later one. It returns after end, or when
// signals is closed.
func obey(signals <-chan os.Signal, now func() time.Time, stop, end func()) {
	if _, ok := <-signals; !ok {
		return
	}
	first := now()
	stop()
	for range signals {
		if now().Sub(first) >= oneSignal {
			end()
			return
		}
	}
}
