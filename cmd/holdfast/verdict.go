package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/recovery/verify"
)

// verdictJSON is the beginning of the JSON form of a report. The queues follow, one queueJSON each,
// and the seconds that it took.
type verdictJSON struct {
	Sound    bool          `json:"sound"`
	Findings []findingJSON `json:"findings"`
	More     int           `json:"more"` // findings that are not listed
	Packets  int64         `json:"packets"`
	Expired  int64         `json:"expired"`
	Bytes    int64         `json:"bytes"` // of keys and payloads
	Keys     int64         `json:"keys"`  // strings and hashes
	LeftOver int64         `json:"left_over"`
}

type findingJSON struct {
	Kind string `json:"kind"`
	Key  string `json:"key"`
	What string `json:"what"`
}

// queueJSON counts the packets of a queue. One of the names is set.
type queueJSON struct {
	ID           uint32  `json:"id"`
	Name         *string `json:"queue,omitempty"`
	NameBase64   []byte  `json:"queue_base64,omitempty"`
	Ready        int64   `json:"ready"`
	Delayed      int64   `json:"delayed"`
	Unselectable int64   `json:"unselectable"`
	Claimed      int64   `json:"claimed"`
	Dead         int64   `json:"dead"`
	Done         int64   `json:"done"`
	Expired      int64   `json:"expired"`
	Bytes        int64   `json:"bytes"`
}

func newQueueJSON(q *verify.QueueCount) queueJSON {
	j := queueJSON{
		ID: q.ID, Ready: q.Ready, Delayed: q.Delayed, Unselectable: q.Unselectable, Claimed: q.Claimed, Dead: q.Dead, Done: q.Done,
		Expired: q.Expired, Bytes: q.Bytes,
	}
	j.Name, j.NameBase64 = textOrBytes(q.Name)
	return j
}

// printVerdictJSON encodes one queue at a time: a million of them together would take some hundred
// megabytes. Errors of w show at its Flush.
func printVerdictJSON(w *bufio.Writer, r *verify.Report) error {
	v := verdictJSON{
		Sound: r.Sound(), Findings: make([]findingJSON, 0, len(r.Findings)), More: r.More,
		Packets: r.Packets, Expired: r.Expired, Bytes: r.Bytes, Keys: r.Keys, LeftOver: r.LeftOver,
	}
	for _, f := range r.Findings {
		v.Findings = append(v.Findings, findingJSON(f))
	}
	head, err := json.Marshal(v)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, `%s,"queues":[`, head[:len(head)-1])
	for i := range r.Queues {
		queue, err := json.Marshal(newQueueJSON(&r.Queues[i]))
		if err != nil {
			return err
		}
		if i > 0 {
			_ = w.WriteByte(',')
		}
		_, _ = w.Write(queue)
	}
	fmt.Fprintf(w, "],\"seconds\":%v}\n", r.Took.Seconds())
	return nil
}

// printVerdict writes a line for each finding, a line for each queue, and the verdict. Errors of w
// show at its Flush.
func printVerdict(w *bufio.Writer, r *verify.Report) {
	for _, f := range r.Findings {
		fmt.Fprintln(w, f)
	}
	if r.More > 0 {
		fmt.Fprintf(w, "%s not listed\n", plural(r.More, "more finding"))
	}
	printQueues(w, r.Queues)
	verdict := "sound"
	if !r.Sound() {
		verdict = "not sound"
	}
	keys := ""
	if r.Keys > 0 {
		keys = ", strings and hashes: " + strconv.FormatInt(r.Keys, 10)
	}
	fmt.Fprintf(w, "%s: %s of %s in %s%s, expired: %d, %v\n", verdict,
		plural(r.Packets, "packet"), plural(r.Bytes, "byte"), plural(len(r.Queues), "queue"), keys, r.Expired, r.Took.Round(time.Millisecond))
}

// printQueues writes a table with a line for each queue, and keeps none of it.
func printQueues(w *bufio.Writer, queues []verify.QueueCount) {
	if len(queues) == 0 {
		return
	}
	fmt.Fprintf(w, "%12s%12s%12s%12s%12s%12s%12s%16s  %s\n",
		"ready", "delayed", "claimed", "dead", "done", "priority 0", "expired", "bytes", "queue")
	for i := range queues {
		q := &queues[i]
		fmt.Fprintf(w, "%12d%12d%12d%12d%12d%12d%12d%16d  %q\n",
			q.Ready, q.Delayed, q.Claimed, q.Dead, q.Done, q.Unselectable, q.Expired, q.Bytes, q.Name)
	}
}

// plural counts things whose name takes an s.
func plural[N int | int64 | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
