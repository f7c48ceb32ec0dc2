package crash

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// keepsLogs says whether the logs of a data folder have a gap in their numbers: newer logs have
// come and gone, and the server keeps the older ones for a reader.
func keepsLogs(data string) bool {
	names, _ := filepath.Glob(filepath.Join(data, "*", "*.mem")) // in the order of their numbers
	last := 0
	for i, name := range names {
		number, _ := strconv.Atoi(strings.TrimSuffix(filepath.Base(name), ".mem"))
		if i > 0 && number > last+1 {
			return true
		}
		last = number
	}
	return false
}

const (
	// keptLogPause is the time between two looks at the folder.
	keptLogPause = 20 * time.Millisecond
	// keptLogWait bounds the load that makes the server keep a log.
	keptLogWait = 20 * time.Second
)

// awaitKeptLog lets the load go on until the server keeps a log for the slow reader, and a random
// while longer. If that takes too long, the run proves nothing about it.
func (r *run) awaitKeptLog() {
	more := time.Duration(r.rng.IntN(200)) * time.Millisecond
	tooLate := time.After(keptLogWait)
	for {
		if keepsLogs(r.Data) {
			time.Sleep(more) // the moment of the end is what is tested
			return
		}
		select {
		case <-time.After(keptLogPause):
		case <-r.server.Exited():
			return
		case <-tooLate:
			r.report(Idle, "no log was kept for a slow reader in %v of load", keptLogWait)
			return
		}
	}
}
