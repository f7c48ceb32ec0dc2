package resp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/glob"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// optionLimits are the options with one value: from the lowest number to the highest, or so many
// bytes. No number of a request is higher than math.MaxInt64, and no text longer than wire.MaxArg.
var optionLimits = []struct {
	request, word string
	low, high     int64
	text          bool
}{
	{request: "QPUSH q x KEY k", word: "PRIO", high: math.MaxUint32},
	{request: "QPUSH q x", word: "KEY", high: wire.MaxArg, text: true},
	{request: "QPUSH q x", word: "TTL", high: broker.MaxTime},
	{request: "QPUSH q x", word: "DELAY", high: broker.MaxTime},
	{request: "QPUSH q x", word: "AT", high: broker.MaxMoment},
	{request: "QPUSH q x", word: "PRODUCER", low: 1, high: broker.MaxConsumer, text: true},
	{request: "QPUSH q x", word: "LEASE", low: 1, high: broker.MaxTime},
	{request: "QPUSH q x", word: "META", low: 0, high: broker.MaxMeta, text: true},
	{request: "QPUSH q x", word: "UNIQUE", low: 1, high: broker.MaxUnique, text: true},
	{request: "QPUSH q x UNIQUE u", word: "WINDOW", low: 1, high: broker.MaxTime},
	{request: "QPUSH q x", word: "BLOCK", high: broker.MaxTime},
	{request: "QMPUSH q 1 x KEY k", word: "PRIO", high: math.MaxUint32},
	{request: "QMPUSH q 1 x", word: "KEY", high: wire.MaxArg, text: true},
	{request: "QMPUSH q 1 x", word: "TTL", high: broker.MaxTime},
	{request: "QMPUSH q 1 x", word: "DELAY", high: broker.MaxTime},
	{request: "QMPUSH q 1 x", word: "AT", high: broker.MaxMoment},
	{request: "QMPUSH q 1 x", word: "PRODUCER", low: 1, high: broker.MaxConsumer, text: true},
	{request: "QMPUSH q 1 x", word: "LEASE", low: 1, high: broker.MaxTime},
	{request: "QMPUSH q 1 x", word: "META", low: 0, high: broker.MaxMeta, text: true},
	{request: "QMPUSH q 1 x", word: "BLOCK", high: broker.MaxTime},
	{request: "QLOAD q x", word: "PRIO", high: math.MaxUint32},
	{request: "QLOAD q x", word: "KEY", high: wire.MaxArg, text: true},
	{request: "QLOAD q x", word: "EXPIRES", high: math.MaxInt64},
	{request: "QLOAD q x", word: "AT", high: math.MaxInt64},
	{request: "QLOAD q x", word: "PRODUCER", low: 1, high: broker.MaxConsumer, text: true},
	{request: "QLOAD q x", word: "LEASE", low: 1, high: broker.MaxTime},
	{request: "QLOAD q x", word: "META", low: 0, high: broker.MaxMeta, text: true},
	{request: "QLOAD q x", word: "UNIQUE", low: 1, high: broker.MaxUnique, text: true},
	{request: "QLOAD q x UNIQUE u", word: "WINDOW", low: 1, high: math.MaxInt64},
	{request: "QLOAD q x", word: "PUSHED", high: math.MaxInt64},
	{request: "QLOAD q x", word: "UNTIL", high: math.MaxInt64},
	{request: "QLOAD q x", word: "ATTEMPTS", high: math.MaxUint32},
	{request: "QLOAD q x", word: "FIRST", high: math.MaxInt64},
	{request: "QLOAD q x", word: "LAST", high: math.MaxInt64},
	{request: "QLOAD q x", word: "CONSUMER", low: 1, high: broker.MaxConsumer, text: true},
	{request: "QLOAD q x", word: "REASON", high: broker.MaxReason, text: true},
	{request: "QLOAD q x", word: "ORIGIN", low: 1, high: maxQueueName, text: true},
	{request: "QLOAD q x", word: "PROGRESS", high: math.MaxUint8},
	{request: "QLOAD q x PROGRESS 1", word: "TEXT", high: broker.MaxReason, text: true},
	{request: "QPOP q", word: "COUNT", low: 1, high: broker.MaxCount},
	{request: "QPOP q", word: "BLOCK", high: broker.MaxTime},
	{request: "QCLAIM q", word: "COUNT", low: 1, high: broker.MaxCount},
	{request: "QCLAIM q COUNT 1", word: "FILL", low: 1, high: broker.MaxTime},
	{request: "QCLAIM q", word: "LEASE", low: 1, high: broker.MaxTime},
	{request: "QCLAIM q", word: "CONSUMER", low: 1, high: broker.MaxConsumer, text: true},
	{request: "QCLAIM q", word: "BLOCK", high: broker.MaxTime},
	{request: "QCLAIM q FILTER a eq 1", word: "MATCH ANY", low: 1, high: broker.MaxTerms},
	{request: "QPOP q", word: "SHARE", high: broker.MaxShareName, text: true},
	{request: "QCLAIM q", word: "SHARE", high: broker.MaxShareName, text: true},
	{request: "QLIST q", word: "SHARE", high: broker.MaxShareName, text: true},
	{request: "QMOVE q TO other", word: "SHARE", high: broker.MaxShareName, text: true},
	{request: "QPURGE q", word: "SHARE", high: broker.MaxShareName, text: true},
	{request: "QHARVEST q", word: "SHARE", high: broker.MaxShareName, text: true},
	{request: "QREDRIVE q", word: "SHARE", high: broker.MaxShareName, text: true},
	{request: "QNACK q 1 1", word: "DELAY", high: broker.MaxTime},
	{request: "QNACK q 1 1", word: "AT", high: broker.MaxMoment},
	{request: "QNACK q 1 1", word: "REASON", high: broker.MaxReason, text: true},
	{request: "QPEEK q", word: "COUNT", low: 1, high: broker.MaxCount},
	{request: "QLIST q", word: "COUNT", low: 1, high: broker.MaxCount},
	{request: "QLIST q", word: "CURSOR", low: 1, high: maxQuoted, text: true},
	{request: "QMOVE q TO other", word: "COUNT", low: 1, high: broker.MaxCount},
	{request: "QHARVEST q", word: "OLDER", high: broker.MaxTime},
	{request: "QHARVEST q", word: "CONSUMER", low: 1, high: broker.MaxConsumer, text: true},
	{request: "QREDRIVE q", word: "COUNT", low: 1, high: broker.MaxCount},
	{request: "QREDRIVE q DRYRUN", word: "TO", high: wire.MaxArg, text: true},
	{request: "QSHARE q s", word: "WEIGHT", low: 1, high: broker.MaxWeight},
	{request: "QSHARE q s", word: "MAX-CLAIMED", low: 1, high: math.MaxUint32},
	{request: "QSHARE q s", word: "HOLD", high: broker.MaxHold},
	{request: "QACK q 1 1", word: "COST", low: 1, high: broker.MaxCost},
	{request: "QNACK q 1 1", word: "COST", low: 1, high: broker.MaxCost},
	{request: "QNACK q 1 1", word: "HOLD", low: 1, high: broker.MaxHold},
	{request: "QSHARES q", word: "AFTER", high: math.MaxInt64},
	{request: "QSHARES q", word: "COUNT", low: 1, high: broker.MaxCount},
	{request: "QUEUES", word: "MATCH", high: glob.MaxLength, text: true},
}

func TestEachOptionTakesItsLimitsAndNothingBeyond(t *testing.T) {
	d := newDoor(t, Config{})
	for _, l := range optionLimits {
		said := func(values ...string) string {
			c := d.dial()
			defer c.Close() // with what is behind the first line of the reply
			c.ask("FLUSHALL", "+OK\r\n")
			c.text("QPUSH", "q", "packet") // so that nobody waits
			args := strings.Fields(l.request)
			for _, v := range values {
				args = append(append(args, strings.Fields(l.word)...), v)
			}
			return c.line(args...)
		}
		value := func(n int64) string {
			if l.text {
				return strings.Repeat("x", int(n))
			}
			return strconv.FormatInt(n, 10)
		}
		refusal := func(n int64) string {
			if l.text {
				return fmt.Sprintf("-ERR %s: expected %d to %d bytes, got %d", l.word, l.low, l.high, n)
			}
			return fmt.Sprintf("-ERR %s: expected a number from %d to %d, got \"%d\"", l.word, l.low, l.high, n)
		}
		for _, n := range []int64{l.low, l.high} {
			if got := said(value(n)); got == refusal(n) {
				t.Errorf("%s %s refuses %d: %s", l.request, l.word, n, got)
			}
		}
		if low := l.low - 1; !l.text || low >= 0 {
			if got := said(value(low)); got != refusal(low) {
				t.Errorf("%s %s %d: %.200s, want %s", l.request, l.word, low, got, refusal(low))
			}
		}
		if high := l.high + 1; l.high != wire.MaxArg && l.high != math.MaxInt64 {
			if got := said(value(high)); got != refusal(high) {
				t.Errorf("%s %s %d: %.200s, want %s", l.request, l.word, high, got, refusal(high))
			}
		}
		word, _, _ := strings.Cut(l.word, " ")
		if got, want := said(value(max(l.low, 1)), value(max(l.low, 1))), "-ERR "+word+": expected it once only"; got != want {
			t.Errorf("%s %s twice: %.200s, want %s", l.request, l.word, got, want)
		}
	}
}

func TestNoLimitOfAnOptionIsLeftOut(t *testing.T) {
	tested := make(map[string]bool)
	for _, l := range optionLimits {
		command, _, _ := strings.Cut(l.request, " ")
		word, _, _ := strings.Cut(l.word, " ")
		tested[command+" "+word] = true
		tested[fmt.Sprint(word, l.low, l.high)] = true
	}
	for _, g := range words.Commands {
		for _, c := range g.Commands {
			for _, o := range c.Options() {
				if o.High > 0 && !tested[c.Name+" "+o.Word] && !tested[fmt.Sprint(o.Word, o.Low, o.High)] {
					t.Errorf("%s %s has limits, and no row of optionLimits", c.Name, o.Word)
				}
			}
		}
	}
}
