package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-queue/holdfast/recovery/verify"
)

// verdictJSON begins the JSON form of a report. Behind it come the queues, one queueJSON each, and
// the seconds that it took.
type verdictJSON struct {
	Sound    bool          `json:"sound"`
	Findings []findingJSON `json:"findings"`
	More     int           `json:"more"` // findings that are not listed
	Packets  int64         `json:"packets"`
	Expired  int64         `json:"expired"`
	Bytes    int64         `json:"bytes"` // of keys and payloads
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
	Expired      int64   `json:"expired"`
	Bytes        int64   `json:"bytes"`
}

func newQueueJSON(q *verify.QueueCount) queueJSON {
	j := queueJSON{ID: q.ID, Ready: q.Ready, Delayed: q.Delayed, Unselectable: q.Unselectable, Expired: q.Expired, Bytes: q.Bytes}
	j.Name, j.NameBase64 = textOrBytes(q.Name)
	return j
}

// printVerdictJSON writes an object a queue at a time: of a million queues all of it would take some
// hundred megabytes. What goes wrong is in w, whose Flush tells.
func printVerdictJSON(w *bufio.Writer, r *verify.Report) error {
	v := verdictJSON{
		Sound: r.Sound(), Findings: make([]findingJSON, 0, len(r.Findings)), More: r.More,
		Packets: r.Packets, Expired: r.Expired, Bytes: r.Bytes,
	}
	for _, f := range r.Findings {
		v.Findings = append(v.Findings, findingJSON{f.Kind, f.Key, f.What})
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

// printVerdict writes a line a finding, a line a queue, and what it comes to. What goes wrong is in
// w, whose Flush tells.
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
	fmt.Fprintf(w, "%s: %s of %s in %s, expired: %d, %v\n",
		verdict, plural(r.Packets, "packet"), plural(r.Bytes, "byte"), plural(len(r.Queues), "queue"), r.Expired, r.Took.Round(time.Millisecond))
}

// printQueues writes a table. A first pass finds how wide its columns are, so that nothing is kept.
func printQueues(w *bufio.Writer, queues []verify.QueueCount) {
	if len(queues) == 0 {
		return
	}
	labels := [...]string{"ready", "delayed", "priority 0", "expired", "bytes"}
	counts := func(q *verify.QueueCount) [len(labels)]int64 {
		return [...]int64{q.Ready, q.Delayed, q.Unselectable, q.Expired, q.Bytes}
	}
	var most [len(labels)]int64
	for i := range queues {
		for column, n := range counts(&queues[i]) {
			most[column] = max(most[column], n)
		}
	}
	var widths [len(labels)]int
	for column, label := range labels {
		widths[column] = 2 + max(len(label), len(strconv.FormatInt(most[column], 10)))
		fmt.Fprintf(w, "%*s", widths[column], label)
	}
	fmt.Fprintln(w, "  queue")
	for i := range queues {
		for column, n := range counts(&queues[i]) {
			fmt.Fprintf(w, "%*d", widths[column], n)
		}
		fmt.Fprintf(w, "  %s\n", readable(queues[i].Name))
	}
}

// readable is a name as it is, or quoted where that could not be told apart from the rest of a line.
func readable(name []byte) string {
	plain := len(name) > 0 && utf8.Valid(name) && !strings.ContainsFunc(string(name), func(r rune) bool {
		return r == ' ' || r == '"' || !strconv.IsPrint(r)
	})
	if plain {
		return string(name)
	}
	return strconv.Quote(string(name))
}

// plural counts things whose name takes an s.
func plural[N int | int64 | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
