package crash

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// keptLogs is how many logs of a data folder are older than a gap in their numbers. Newer logs have
// come and gone, so the server keeps these for a reader.
func keptLogs(data string) (kept int, err error) {
	names, err := filepath.Glob(filepath.Join(data, "*", "*.mem")) // in the order of their numbers
	if err != nil {
		return 0, err
	}
	last := 0
	for i, name := range names {
		number, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(name), ".mem"))
		if err != nil {
			return 0, fmt.Errorf("a log has the name %s, which is no number: %w", name, err)
		}
		if i > 0 && number > last+1 {
			kept = i
		}
		last = number
	}
	return kept, nil
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
		kept, err := keptLogs(r.Data)
		if err != nil {
			r.report(Idle, "cannot look for logs that are kept for a reader: %v", err)
			return
		}
		if kept > 0 {
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
