package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/holdfast-queue/holdfast/recovery"
)

// verifyCmd looks at a folder.
type verifyCmd struct {
	Dir  folder `arg:"" help:"Data folder; no server may be running on it."`
	Deep bool   `help:"Check every block of every table against its checksum, too."`
	JSON bool   `help:"Print a JSON object."`

	progress
}

// Help is shown below the usage line.
func (c *verifyCmd) Help() string {
	return `Reads everything in a data folder and changes nothing: whether the packets are those that the control record counts, whether every record can be read and stands where it belongs, and whether claims and payloads have their owners. Each finding is a line: what kind it is, the key it is about, and a sentence. Then come the queues and what they hold.

Exit codes: 0 the folder is sound, 1 something is wrong with it, 2 it could not be looked at.

Examples:

    holdfast verify ./holdfast-data
    holdfast verify ./holdfast-data --deep --json
    holdfast verify ./holdfast-data --quiet && echo sound`
}

// blindError says that a folder could not be looked at.
type blindError struct{ err error }

func (e *blindError) Error() string { return fmt.Sprintf("verify: could not look: %v", e.err) }
func (e *blindError) Unwrap() error { return e.err }

// Run verifies, and returns an error unless the folder is sound.
func (c *verifyCmd) Run(ctx context.Context, p *program) error {
	m := p.meter(c.Quiet)
	defer m.end()
	report, err := recovery.Verify(ctx, string(c.Dir), recovery.VerifyOptions{
		Deep: c.Deep,
		Now:  time.Now().UnixMilli(),
		Progress: func(step string, done, total int64) {
			if step == "files" {
				m.set("check files", inBytes, done, total)
			} else {
				m.set("check packets", inPackets, done, total)
			}
		},
	})
	m.end()
	if err != nil {
		return &blindError{interrupted(ctx, err)}
	}
	if err := c.print(p.stdout, &report); err != nil {
		return err
	}
	if !report.Sound() {
		return fmt.Errorf("verify: the folder has %s", plural(len(report.Findings)+report.More, "finding"))
	}
	return nil
}

// verifyJSON is the JSON form of a report.
type verifyJSON struct {
	Sound    bool          `json:"sound"`
	Findings []findingJSON `json:"findings"`
	More     int           `json:"more"` // findings that are not listed
	Packets  int64         `json:"packets"`
	Expired  int64         `json:"expired"`
	Bytes    int64         `json:"bytes"` // of keys and payloads
	Queues   []queueJSON   `json:"queues"`
	Seconds  float64       `json:"seconds"`
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

func (c *verifyCmd) print(w io.Writer, r *recovery.VerifyReport) error {
	if c.JSON {
		return json.NewEncoder(w).Encode(newVerifyJSON(r))
	}
	for _, f := range r.Findings {
		if _, err := fmt.Fprintln(w, f); err != nil {
			return err
		}
	}
	if r.More > 0 {
		fmt.Fprintf(w, "%d more findings are not listed\n", r.More)
	}
	if len(r.Queues) > 0 {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "ready\tdelayed\tpriority 0\texpired\tbytes\t  queue\t")
		for _, q := range r.Queues {
			fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%d\t  %s\n", q.Ready, q.Delayed, q.Unselectable, q.Expired, q.Bytes, readable(q.Name))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	verdict := "sound"
	if !r.Sound() {
		verdict = "not sound"
	}
	_, err := fmt.Fprintf(w, "%s: %d packets of %d bytes in %d queues, %d have expired, %v\n",
		verdict, r.Packets, r.Bytes, len(r.Queues), r.Expired, r.Took.Round(time.Millisecond))
	return err
}

func newVerifyJSON(r *recovery.VerifyReport) verifyJSON {
	v := verifyJSON{
		Sound: r.Sound(), Findings: []findingJSON{}, More: r.More, Packets: r.Packets, Expired: r.Expired, Bytes: r.Bytes,
		Queues: []queueJSON{}, Seconds: r.Took.Seconds(),
	}
	for _, f := range r.Findings {
		v.Findings = append(v.Findings, findingJSON{f.Kind, f.Key, f.What})
	}
	for _, q := range r.Queues {
		j := queueJSON{ID: q.ID, Ready: q.Ready, Delayed: q.Delayed, Unselectable: q.Unselectable, Expired: q.Expired, Bytes: q.Bytes}
		j.Name, j.NameBase64 = textOrBytes(q.Name)
		v.Queues = append(v.Queues, j)
	}
	return v
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

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
