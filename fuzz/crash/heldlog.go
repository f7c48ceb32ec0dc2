package crash

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// heldLogs is how many logs of a data folder are from before a gap: newer ones have come and gone, and
// a reader kept these.
func heldLogs(data string) (held int, err error) {
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
			held = i
		}
		last = number
	}
	return held, nil
}

const (
	// heldLogPause is between two looks at the folder.
	heldLogPause = 20 * time.Millisecond
	// heldLogWait bounds the load that makes the server keep a log.
	heldLogWait = 20 * time.Second
)

// awaitHeldLog lets the load go on until the slow reader has made the server keep a log, and a random
// while longer. The run proves nothing about that if it takes too long.
func (r *run) awaitHeldLog() {
	more := time.Duration(r.rng.IntN(200)) * time.Millisecond
	tooLate := time.After(heldLogWait)
	for {
		held, err := heldLogs(r.Data)
		if err != nil {
			r.add(Idle, "cannot look for logs that a reader keeps: %v", err)
			return
		}
		if held > 0 {
			time.Sleep(more) // the moment of the end is what is tested
			return
		}
		select {
		case <-time.After(heldLogPause):
		case <-r.server.Exited():
			return
		case <-tooLate:
			r.add(Idle, "no log was kept for a slow reader in %v of load after its cycle was over", heldLogWait)
			return
		}
	}
}

// countHeldLogs notes whether the end of the cycle left logs that the slow reader had kept.
func (r *run) countHeldLogs(cycle int) {
	held, err := heldLogs(r.Data)
	if err != nil {
		r.add(Idle, "cannot look for logs that a reader kept: %v", err)
		return
	}
	r.Logf("cycle %d: a slow reader read %d bytes of a backup, and %d logs were kept for it", cycle, r.reader.read, held)
	if held > 0 {
		r.result.Held++
	}
}
