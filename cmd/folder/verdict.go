package folder

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/recovery/verify"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// printVerdictJSON encodes one queue at a time: a million of them together would take some hundred
// megabytes. Errors of w show at its Flush.
func printVerdictJSON(w *bufio.Writer, r *verify.Report) {
	type finding struct {
		Kind string `json:"kind"`
		Key  string `json:"key"`
		What string `json:"what"`
	}
	findings := make([]finding, 0, len(r.Findings))
	for _, f := range r.Findings {
		findings = append(findings, finding(f))
	}
	var o terminal.JSON
	o.Add("sound", r.Sound())
	o.Add("findings", findings)
	o.Add("more", r.More) // findings that are not listed
	addFigures(&o, figure{"packets", r.Packets}, figure{"expired", r.Expired}, figure{"bytes", r.Bytes}, figure{"keys", r.Keys}, figure{"left_over", r.LeftOver})
	fmt.Fprintf(w, `%s,"queues":[`, []byte(o))
	for i := range r.Queues {
		if i > 0 {
			_ = w.WriteByte(',')
		}
		_, _ = w.Write(bytes.TrimSpace(queueCountJSON(&r.Queues[i])))
	}
	fmt.Fprintf(w, "],\"seconds\":%v}\n", r.Took.Seconds())
}

func queueCountJSON(q *verify.QueueCount) []byte {
	var o terminal.JSON
	o.Add("id", q.ID)
	o.Bytes("queue", q.Name)
	if q.Database > 0 {
		o.Add("database", q.Database)
	}
	for state, name := range recovery.StateNames {
		addFigures(&o, figure{name, q.Counts[state]})
	}
	addFigures(&o, figure{"expired", q.Expired}, figure{"bytes", q.Bytes})
	return o.Line()
}

// printVerdict writes a line for each finding, a line for each queue, and the verdict. Errors of w
// show at its Flush.
func printVerdict(w *bufio.Writer, r *verify.Report) {
	for _, f := range r.Findings {
		fmt.Fprintln(w, f)
	}
	if r.More > 0 {
		fmt.Fprintf(w, "%s not listed\n", terminal.Plural(r.More, "more finding"))
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
		terminal.Plural(r.Packets, "packet"), terminal.Plural(r.Bytes, "byte"), terminal.Plural(len(r.Queues), "queue"), keys, r.Expired, r.Took.Round(time.Millisecond))
}

// alignedRows is how many queues are aligned with each other: there may be a million.
const alignedRows = 1000

// printQueues writes a table with a line for each queue.
func printQueues(w *bufio.Writer, queues []verify.QueueCount) {
	if len(queues) == 0 {
		return
	}
	t := terminal.NewTable(w)
	t.Row("QUEUE", "DATABASE", "READY", "DELAYED", "CLAIMED", "DEAD", "DONE", "PRIORITY-0", "EXPIRED", "BYTES")
	for i := range queues {
		q := &queues[i]
		cells := []string{terminal.Cell(string(q.Name))}
		for _, n := range []int64{int64(q.Database), q.Counts[content.Ready], q.Counts[content.Delayed], q.Counts[content.Claimed], q.Counts[content.Dead],
			q.Counts[content.Done], q.Counts[recovery.Unselectable], q.Expired, q.Bytes} {
			cells = append(cells, terminal.Decimal(n))
		}
		if t.Row(cells...); i%alignedRows == alignedRows-1 {
			_ = t.Flush()
		}
	}
	_ = t.Flush()
}
