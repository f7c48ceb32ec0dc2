package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

// Tail prints events as they happen.
type Tail struct {
	Queue string `arg:"" predictor:"queue" optional:"" help:"Queue to look at; it need not exist yet (default: what an operator wants to know of all queues and databases, and of the server)."`
	JSON  bool   `help:"Print the JSON object of each event, one a line. Times are Unix milliseconds. Bytes that are not UTF-8 are {\"base64\":\"...\"}."`

	connection.WorkQueue
}

func (c *Tail) Help() string {
	return `Prints what happens in a queue as it happens, once it is on disk: packets that are pushed, claimed, acknowledged and so on. Without a queue it prints packets that died, queues that are full or whose oldest packet passes alert-age, a disk or a memory that is full, and work in the background that fails. Nothing is taken. If too much happens at once, or the output is read too slowly, events are left out, and a line says how many.

A signal ends it well. The end of the server is an error: what happens after it is not told.

Examples:

    holdfast tail jobs
    holdfast tail
    holdfast tail jobs --json | jq 'select(.event == "dead")'`
}

// Run prints events until a signal.
func (c *Tail) Run(ctx context.Context, p *terminal.Process) error {
	o, form := p.Long(), c.line
	if c.JSON {
		form = func(event []byte) ([]byte, error) { return append(terminal.Escaped(event), '\n'), nil }
	} else if _, err := o.WriteString(eventHead); err != nil {
		return err
	}
	err := c.Call(ctx, func(ctx context.Context, server *client.Client) error {
		listen := server.Events
		if c.Queue != "" {
			listen = func(ctx context.Context, fn func([]byte) error) error { return server.Tail(ctx, c.Queue, fn) }
		}
		return listen(ctx, func(event []byte) error {
			line, err := form(event)
			if err == nil {
				_, _ = o.Write(line) // Flush says what is wrong
				err = o.Flush()
			}
			return err
		})
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

const eventForm = "%-12s  %-8s  %8s  %8s  %7s  %s\n"

// eventHead is above the lines for people.
var eventHead = fmt.Sprintf(eventForm, "TIME", "EVENT", "ID", "PRIORITY", "BYTES", "NOTE")

// line is an event for people.
func (c *Tail) line(text []byte) (line []byte, err error) {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	e := make(eventFields)
	if err := decoder.Decode(&e); err != nil {
		return nil, fmt.Errorf("the server has told %.200q, which is no event: %w", text, err)
	}
	if c.Queue != "" { // each has the same
		delete(e, "queue")
	}
	at := time.UnixMilli(e.number("at")).Local().Format("15:04:05.000")
	return fmt.Appendf(nil, eventForm, at, e.cell("event"), e.cell("id"), e.cell("priority"), e.cell("bytes"), e.note()), nil
}

// eventFields are those of an event, by name.
type eventFields map[string]any

// text is a field as it was before JSON, "" if there is none.
func (e eventFields) text(name string) string {
	v, ok := e[name]
	if b, isBytes := jsonbytes.Of(v); isBytes {
		return string(b)
	}
	if ok {
		return fmt.Sprint(v)
	}
	return ""
}

func (e eventFields) number(name string) int64 {
	n, _ := e[name].(json.Number)
	i, _ := n.Int64()
	return i
}

// cell is a field for a terminal, a dash if there is none.
func (e eventFields) cell(name string) string {
	if text := e.text(name); text != "" {
		return terminal.Cell(text)
	}
	return "-"
}

// note is what is said of the other fields.
func (e eventFields) note() string {
	var all []string
	say := func(words, name string) {
		if text := e.text(name); text != "" {
			all = append(all, words+terminal.Cell(text))
		}
	}
	say("queue ", "queue")
	if db := e.number("database"); db != 0 && len(all) > 0 {
		all[0] += fmt.Sprint(" of database ", db)
	}
	say("attempt ", "attempts")
	say("consumer ", "consumer")
	say("to ", "to")
	if _, ok := e["age_ms"]; ok {
		all = append(all, "the oldest packet waits for "+terminal.Span(time.Duration(e.number("age_ms"))*time.Millisecond))
	}
	if n := e.number("messages"); n > 0 {
		all = append(all, terminal.Plural(n, "event")+" left out: too many at once, or read too slowly")
	}
	say("the "+e.text("event")+" ", "state")
	say("", "reason")
	say("", "error")
	return cmp.Or(strings.Join(all, ", "), "-")
}
