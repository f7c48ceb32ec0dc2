package resp

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
)

// option is a word that a command of the work queue takes behind its fixed arguments: in either
// case, in any order, once. Only TAG and FILTER may stand there several times.
type option uint8

// Those before optKey have a number, those before optState a text, and those from optNewest on
// nothing.
const (
	optPrio option = iota
	optTTL
	optDelay
	optAt
	optCount
	optLease
	optBlock
	optOlder
	optWindow
	optKey
	optProducer
	optUnique
	optConsumer
	optReason
	optCursor
	optMatch
	optTo
	optState
	optTag
	optFilter
	optTerms // of FILTER, how many match
	optNewest
	optOldest
	optGroup
	optDead
	optDryRun
	numOptions
)

// rule is what an option looks like.
type rule struct {
	word      string // in lower case
	low, high int64  // of its number, or of the bytes of its text
}

var rules = [numOptions]rule{
	optPrio:     {"prio", 0, math.MaxUint32},
	optTTL:      {"ttl", 0, broker.MaxTime},
	optDelay:    {"delay", 0, broker.MaxTime},
	optAt:       {"at", 0, maxMoment},
	optCount:    {"count", 1, broker.MaxCount},
	optLease:    {"lease", 1, broker.MaxTime},
	optBlock:    {"block", 0, broker.MaxTime},
	optOlder:    {"older", 0, broker.MaxTime},
	optWindow:   {"window", 1, broker.MaxTime},
	optKey:      {"key", 0, maxArg},
	optProducer: {"producer", 1, broker.MaxConsumer},
	optUnique:   {"unique", 1, broker.MaxUnique},
	optConsumer: {"consumer", 1, broker.MaxConsumer},
	optReason:   {"reason", 0, broker.MaxReason},
	optCursor:   {"cursor", 1, maxQuoted},
	optMatch:    {"match", 0, maxPattern},
	optTo:       {"to", 0, maxArg},
	optState:    {word: "state"},
	optTag:      {word: "tag"},
	optFilter:   {word: "filter"},
	optTerms:    {word: "match"},
	optNewest:   {word: "newest"},
	optOldest:   {word: "oldest"},
	optGroup:    {word: "group"},
	optDead:     {word: "dead"},
	optDryRun:   {word: "dryrun"},
}

// optionSet is the options that a command takes, or that a request has.
type optionSet uint32

func oneOf(all ...option) (set optionSet) {
	for _, o := range all {
		set |= 1 << o
	}
	return set
}

func (set optionSet) has(o option) bool { return set&(1<<o) != 0 }

// find returns the option that a word names.
func (set optionSet) find(word []byte) (o option, ok bool) {
	for o := range numOptions {
		if set.has(o) && is(word, rules[o].word) {
			return o, true
		}
	}
	return 0, false
}

// words says for an error what is expected: one of the options.
func (set optionSet) words() string {
	var words []string
	for o := range numOptions {
		if set.has(o) {
			words = append(words, o.String())
		}
	}
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + strings.Join(words, ", ")
}

// String is the option as errors call it.
func (o option) String() string { return strings.ToUpper(rules[o].word) }

// options are what a request says behind its fixed arguments. The texts alias it.
type options struct {
	given   optionSet
	numbers [optKey]int64
	texts   [optState - optKey][]byte
	state   broker.State // 0: all
	tags    []broker.PacketTag

	filter    broker.Filter // see tagFilter
	termBytes int
}

// parseOptions reads the options of a command, which takes some. An error says what was expected.
func parseOptions(args [][]byte, takes optionSet) (o options, err error) {
	for len(args) > 0 {
		opt, ok := takes.find(args[0])
		switch {
		case !ok:
			return o, failure(fmt.Sprintf("ERR unknown option %q: expected %s", quoted(args[0]), takes.words()))
		case o.given.has(opt) && opt != optTag && opt != optFilter:
			return o, failure(fmt.Sprintf("ERR %v: expected it once only", opt))
		}
		o.given |= 1 << opt
		if args, err = o.value(opt, args[1:]); err != nil {
			return o, err
		}
	}
	if o.given.has(optNewest) && o.given.has(optOldest) {
		return o, failure("ERR NEWEST, OLDEST: expected one of the two")
	}
	if err := o.checkFilter(); err != nil {
		return o, err
	}
	return o, o.sortTags()
}

// value reads what follows an option, and returns the arguments behind that.
func (o *options) value(opt option, args [][]byte) (rest [][]byte, err error) {
	switch {
	case opt >= optNewest:
		return args, nil
	case opt == optFilter:
		return o.addTerm(args)
	case opt == optTerms:
		return o.setLeast(args)
	case opt == optTag && len(args) < 2:
		return nil, failure("ERR TAG: expected a name and a value behind it")
	case len(args) == 0:
		return nil, failure(fmt.Sprintf("ERR %v: expected a value behind it", opt))
	case opt == optTag:
		return args[2:], o.addTag(args[0], args[1])
	case opt == optState:
		o.state, err = stateArg(args[0])
	case opt < optKey:
		o.numbers[opt], err = numberArg(opt.String(), args[0], rules[opt].low, rules[opt].high)
	default:
		o.texts[opt-optKey] = args[0]
		err = checkText(opt.String(), args[0], rules[opt].low, rules[opt].high)
	}
	return args[1:], err
}

// numberArg reads a whole number from low to high; what names it in an error.
func numberArg(what string, arg []byte, low, high int64) (int64, error) {
	n, ok := parseInt(arg)
	if !ok || n < low || n > high {
		return 0, failure(fmt.Sprintf("ERR %s: expected a number from %d to %d, got %q", what, low, high, quoted(arg)))
	}
	return n, nil
}

func checkText(what string, arg []byte, low, high int64) error {
	if n := int64(len(arg)); n < low || n > high {
		return failure(fmt.Sprintf("ERR %s: expected %d to %d bytes, got %d", what, low, high, n))
	}
	return nil
}

func stateArg(arg []byte) (broker.State, error) {
	for state := broker.Ready; state <= broker.Damaged; state++ {
		if is(arg, state.String()) {
			return state, nil
		}
	}
	return 0, failure(fmt.Sprintf("ERR STATE: expected ready, delayed, claimed, dead, done or damaged, got %q", quoted(arg)))
}

func (o *options) addTag(name, value []byte) error {
	switch {
	case len(name) == 0:
		return failure("ERR TAG: expected a name that is not empty")
	case len(o.tags) == broker.MaxTags:
		return failure(fmt.Sprintf("ERR TAG: expected at most %d tags", broker.MaxTags))
	case len(name)+len(value) > broker.MaxTagBytes:
		return errTagBytes
	}
	o.tags = append(o.tags, broker.PacketTag{Name: string(name), Value: string(value)})
	return nil
}

var errTagBytes = failure(fmt.Sprintf("ERR TAG: expected names and values of at most %d bytes together", broker.MaxTagBytes))

// sortTags brings the tags into the order of their names.
func (o *options) sortTags() error {
	slices.SortFunc(o.tags, func(a, b broker.PacketTag) int { return cmp.Compare(a.Name, b.Name) })
	if bytesOfTags(o.tags) > broker.MaxTagBytes {
		return errTagBytes
	}
	for i := range o.tags[min(1, len(o.tags)):] {
		if o.tags[i].Name == o.tags[i+1].Name {
			return failure(fmt.Sprintf("ERR TAG: expected each name once, got %q twice", quoted([]byte(o.tags[i].Name))))
		}
	}
	return nil
}

func bytesOfTags(tags []broker.PacketTag) (n int) {
	for _, t := range tags {
		n += len(t.Name) + len(t.Value)
	}
	return n
}

func (o *options) has(opt option) bool { return o.given.has(opt) }

// number returns the number of an option, or another one if it was not given.
func (o *options) number(opt option, otherwise int64) int64 {
	if !o.given.has(opt) {
		return otherwise
	}
	return o.numbers[opt]
}

// text returns the text of an option, nil if it was not given.
func (o *options) text(opt option) []byte { return o.texts[opt-optKey] }

// idArg reads the id of a packet.
func idArg(arg []byte) (broker.ID, error) {
	n, ok := parseInt(arg)
	if !ok {
		return 0, failure(fmt.Sprintf("ERR id: expected the id of a packet, as QPUSH replies with it, got %q", quoted(arg)))
	}
	return broker.ID(n), nil
}

// idArgs reads the ids of some packets.
func idArgs(args [][]byte) ([]broker.ID, error) {
	if len(args) > broker.MaxCount {
		return nil, failure(fmt.Sprintf("ERR id: expected at most %d, got %d", broker.MaxCount, len(args)))
	}
	ids := make([]broker.ID, len(args))
	for i, arg := range args {
		var err error
		if ids[i], err = idArg(arg); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// receiptArgs reads pairs of an id and a token. They are valid until the next call.
func (p *Protocol) receiptArgs(args [][]byte) ([]broker.Receipt, error) {
	if len(args)%2 != 0 {
		return nil, failure("ERR token: expected one behind each id")
	}
	if len(args)/2 > broker.MaxCount {
		return nil, failure(fmt.Sprintf("ERR id: expected at most %d with their tokens, got %d", broker.MaxCount, len(args)/2))
	}
	p.receipts = p.receipts[:0]
	for ; len(args) > 0; args = args[2:] {
		id, err := idArg(args[0])
		if err != nil {
			return nil, err
		}
		token, err := numberArg("token", args[1], 1, math.MaxInt64)
		if err != nil {
			return nil, err
		}
		p.receipts = append(p.receipts, broker.Receipt{ID: id, Token: token})
	}
	return p.receipts, nil
}

// maxMoment is the latest moment that AT says, in Unix milliseconds: in the year 2109.
const maxMoment = 1<<42 - 1

// delayOrAt refuses more than one of the options that say when a packet is ready.
func (o *options) delayOrAt() error {
	if set := o.given & oneOf(optDelay, optAt, optDead); set&(set-1) != 0 {
		return failure("ERR DELAY, AT, DEAD: expected one of them")
	}
	return nil
}
