package words

import "strings"

// Option is what a command of the work queue may take behind its arguments: a word, in either case,
// and its values. Options come in any order, each once.
type Option struct {
	Word      string
	Values    string  // as Arguments has values; "": the word says all
	Low, High int64   // of its number, or of the bytes of its text; 0 and 0 if it has neither
	Many      bool    // it may come several times
	Choice    Choice  // the choices that it belongs to
	Needs     *Option // which must be there with it
}

// Choice is a set of choices, a bit each, in the order of Choices. Of the options that belong to a
// choice a request has one at most.
type Choice uint8

const (
	when Choice = 1 << iota
	dies
	end
	most
	holds
)

// Choices are what a refusal says of them, by the bits of a Choice.
var Choices = [...]string{
	"DELAY, AT, DEAD: expected one of them",
	"DEAD, UNCOUNTED, HOLD: expected one of them",
	"NEWEST, OLDEST: expected one of the two",
	"GROUP, COUNT: expected one of the two",
	"WINDOW, UNTIL: expected one of the two, as a window lasts whatever becomes of the packet",
}

// Limits of the broker and of the protocol, in numbers: this package imports neither. Tests of resp
// hold them to what those say.
const (
	maxTime   = 10 * 365 * 24 * 3600 * 1000 // ten years in milliseconds
	maxHold   = 24 * 3600 * 1000            // a day in milliseconds
	maxMoment = 1<<42 - 1                   // in Unix milliseconds: in the year 2109
	maxUint32 = 1<<32 - 1
	maxInt64  = 1<<63 - 1
	maxArg    = 1 << 20 // no longer text arrives
	maxName   = 255     // of a consumer or producer, or an id of UNIQUE
	maxReason = 4096
)

// The options, each once. Those that mean something else in one command have its name before the
// word.
var (
	PRIO     = Option{Word: "PRIO", Values: "n", High: maxUint32}
	KEY      = Option{Word: "KEY", Values: "k", High: maxArg}
	TTL      = Option{Word: "TTL", Values: "ms", High: maxTime}
	DELAY    = Option{Word: "DELAY", Values: "ms", High: maxTime, Choice: when}
	AT       = Option{Word: "AT", Values: "unix-ms", High: maxMoment, Choice: when}
	TAG      = Option{Word: "TAG", Values: "name value", Many: true}
	PRODUCER = Option{Word: "PRODUCER", Values: "name", Low: 1, High: maxName}
	UNIQUE   = Option{Word: "UNIQUE", Values: "id", Low: 1, High: maxName}
	WINDOW   = Option{Word: "WINDOW", Values: "ms", Low: 1, High: maxTime, Choice: holds, Needs: &UNIQUE}
	HOLDS    = Option{Word: "UNTIL", Values: "claim|end", Choice: holds, Needs: &UNIQUE}
	REPLACE  = Option{Word: "REPLACE", Needs: &UNIQUE}
	TELL     = Option{Word: "TELL", Needs: &UNIQUE}
	META     = Option{Word: "META", Values: "bytes", High: maxReason}
	BLOCK    = Option{Word: "BLOCK", Values: "ms", High: maxTime}

	EXPIRES     = Option{Word: "EXPIRES", Values: "unix-ms", High: maxInt64}
	QLOADAT     = Option{Word: "AT", Values: "unix-ms", High: maxInt64}
	QLOADWINDOW = Option{Word: "WINDOW", Values: "unix-ms", Low: 1, High: maxInt64, Choice: holds, Needs: &UNIQUE}
	UNTILCLAIM  = Option{Word: "UNTILCLAIM", Choice: holds, Needs: &UNIQUE}
	PUSHED      = Option{Word: "PUSHED", Values: "unix-ms", High: maxInt64}
	UNTIL       = Option{Word: "UNTIL", Values: "unix-ms", High: maxInt64}
	ATTEMPTS    = Option{Word: "ATTEMPTS", Values: "n", High: maxUint32}
	FIRST       = Option{Word: "FIRST", Values: "unix-ms", High: maxInt64}
	LAST        = Option{Word: "LAST", Values: "unix-ms", High: maxInt64}
	ORIGIN      = Option{Word: "ORIGIN", Values: "queue", Low: 1, High: 1<<16 - 1}
	PROGRESS    = Option{Word: "PROGRESS", Values: "percent", High: 255}
	TEXT        = Option{Word: "TEXT", Values: "text", High: maxReason, Needs: &PROGRESS}

	OR       = Option{Word: "OR", Values: "queue", Many: true}
	COUNT    = Option{Word: "COUNT", Values: "n", Low: 1, High: 1000, Choice: most}
	FILL     = Option{Word: "FILL", Values: "ms", Low: 1, High: maxTime, Needs: &COUNT}
	NEWEST   = Option{Word: "NEWEST", Choice: end}
	OLDEST   = Option{Word: "OLDEST", Choice: end}
	GROUP    = Option{Word: "GROUP", Choice: most}
	LEASE    = Option{Word: "LEASE", Values: "ms", Low: 1, High: maxTime}
	CONSUMER = Option{Word: "CONSUMER", Values: "name", Low: 1, High: maxName}

	REASON    = Option{Word: "REASON", Values: "text", High: maxReason}
	DEAD      = Option{Word: "DEAD", Choice: when | dies}
	UNCOUNTED = Option{Word: "UNCOUNTED", Choice: dies}
	HOLD      = Option{Word: "HOLD", Values: "ms", Low: 1, High: maxHold, Choice: dies}

	FILTER      = Option{Word: "FILTER", Values: "tag op value", Many: true}
	MATCH       = Option{Word: "MATCH", Values: "ALL | MATCH ANY n", Low: 1, High: 64, Needs: &FILTER}
	SHARE       = Option{Word: "SHARE", Values: "name", High: maxName}
	STATE       = Option{Word: "STATE", Values: "state"}
	CURSOR      = Option{Word: "CURSOR", Values: "c", Low: 1, High: 128}
	OLDER       = Option{Word: "OLDER", Values: "ms", High: maxTime}
	TO          = Option{Word: "TO", Values: "other", High: maxArg}
	DRYRUN      = Option{Word: "DRYRUN"}
	WEIGHT      = Option{Word: "WEIGHT", Values: "n", Low: 1, High: 1000}
	MAXCLAIMED  = Option{Word: "MAX-CLAIMED", Values: "n", Low: 1, High: maxUint32}
	RATE        = Option{Word: "RATE", Values: "n/period"}
	COST        = Option{Word: "COST", Values: "n", Low: 1, High: 1_000_000}
	QSHAREHOLD  = Option{Word: "HOLD", Values: "ms", High: maxHold}
	RESET       = Option{Word: "RESET"}
	AFTER       = Option{Word: "AFTER", Values: "cursor", High: maxInt64}
	FORCE       = Option{Word: "FORCE"}
	QUEUESMATCH = Option{Word: "MATCH", Values: "pattern", High: 1024}
)

// options are those of each command that takes some, in the order of the documents.
var options = map[string][]*Option{
	"QPUSH":    {&PRIO, &KEY, &TTL, &DELAY, &AT, &TAG, &PRODUCER, &LEASE, &META, &UNIQUE, &WINDOW, &HOLDS, &REPLACE, &TELL, &BLOCK},
	"QMPUSH":   {&PRIO, &KEY, &TTL, &DELAY, &AT, &TAG, &PRODUCER, &LEASE, &META, &BLOCK},
	"QLOAD":    {&PRIO, &KEY, &EXPIRES, &QLOADAT, &TAG, &PRODUCER, &LEASE, &META, &UNIQUE, &QLOADWINDOW, &UNTILCLAIM, &PUSHED, &STATE, &UNTIL, &ATTEMPTS, &FIRST, &LAST, &CONSUMER, &REASON, &ORIGIN, &PROGRESS, &TEXT},
	"QPOP":     {&OR, &COUNT, &NEWEST, &OLDEST, &GROUP, &SHARE, &FILTER, &MATCH, &BLOCK},
	"QCLAIM":   {&OR, &COUNT, &FILL, &NEWEST, &OLDEST, &GROUP, &SHARE, &FILTER, &MATCH, &LEASE, &CONSUMER, &BLOCK},
	"QACK":     {&COST},
	"QNACK":    {&DELAY, &AT, &DEAD, &REASON, &UNCOUNTED, &HOLD, &COST},
	"QPEEK":    {&COUNT},
	"QLIST":    {&STATE, &SHARE, &FILTER, &MATCH, &CURSOR, &COUNT},
	"QMOVE":    {&STATE, &COUNT, &SHARE, &FILTER, &MATCH, &DRYRUN},
	"QPURGE":   {&STATE, &SHARE, &FILTER, &MATCH, &DRYRUN},
	"QHARVEST": {&OLDER, &CONSUMER, &SHARE, &FILTER, &MATCH, &DRYRUN},
	"QREDRIVE": {&COUNT, &TO, &SHARE, &FILTER, &MATCH, &DRYRUN},
	"QRUN":     {&DELAY, &AT},
	"QSET":     {&FORCE},
	"QSHARE":   {&WEIGHT, &MAXCLAIMED, &RATE, &QSHAREHOLD, &RESET},
	"QSHARES":  {&AFTER, &COUNT},
	"QUEUES":   {&QUEUESMATCH},
}

// Options are what the command may take behind its arguments.
func (c *Command) Options() []*Option { return options[c.Name] }

// Syntax is all that follows the command's name: its arguments, and its options in []. Options
// between which there is a choice stand together, and one that needs another stands in its [].
func (c *Command) Syntax() string {
	text, closing := c.Arguments, ""
	last := &Option{}
	for _, o := range c.Options() {
		switch {
		case o.Choice&last.Choice != 0:
			text += "|"
		case o.Needs == last && !last.Many:
			text, closing = text+" [", "]"+closing
		case o.Needs != nil && o.Needs == last.Needs:
			text += "] ["
		default:
			text, closing = text+closing+" [", "]"
		}
		text += strings.TrimSpace(o.Word + " " + o.Values)
		if o.Many {
			closing += "…"
		}
		last = o
	}
	return strings.TrimSpace(text + closing)
}
