package main

import (
	"os"
	"time"
)

// oneSignal is how long signals count as one: timeout(1) signals a command and then its group, and
// so the command twice.
const oneSignal = 500 * time.Millisecond

// obey makes the first signal stop the command, and another one end it at once. It returns after
// that, or when signals is closed.
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
