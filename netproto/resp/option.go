package resp

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// option is a word that a command of the work queue takes behind its fixed arguments: in either
// case, in any order, once. Only TAG and FILTER may stand there several times.
type option struct {
	word string
	// into is where its value goes, which says what that looks like: see read. nil: it is an option of
	// a similar command only.
	into      any
	low, high int64 // of its number, or of the bytes of its text
}

// maxMoment is the latest moment that AT says, in Unix milliseconds: in the year 2109.
const maxMoment = 1<<42 - 1

// findOption returns which option a word names, -1 if none.
func findOption(options []option, word []byte) int {
	for i := range options {
		if is(word, options[i].word) {
			return i
		}
	}
	return -1
}

// parseOptions reads the options of a command, which takes some. A failure says what was expected.
func parseOptions(args [][]byte, takes ...option) {
	given := uint32(0)
	for len(args) > 0 {
		i := findOption(takes, args[0])
		if i < 0 || takes[i].into == nil {
			refuseOption(args[0], takes)
		}
		o := &takes[i]
		if given&(1<<i) != 0 && o.word != "TAG" && o.word != "FILTER" {
			panic(failure("ERR " + o.word + ": expected it once only"))
		}
		given |= 1 << i
		args = o.read(args[1:])
	}
	for i := range takes {
		switch into := takes[i].into.(type) {
		case *filter:
			into.check()
		case *[]broker.PacketTag:
			sortTags(*into)
		}
	}
}

func refuseOption(word []byte, takes []option) {
	var names []string
	for i := range takes {
		if takes[i].into != nil {
			names = append(names, strings.Clone(takes[i].word)) // else into escapes with the word
		}
	}
	expected := strings.Join(names, ", ")
	if len(names) > 1 {
		expected = "one of " + expected
	}
	refuse("ERR unknown option %q: expected %s", quoted(word), expected)
}

// read reads what follows an option, and returns the arguments behind that.
func (o *option) read(args [][]byte) (rest [][]byte) {
	switch into := o.into.(type) {
	case *bool:
		*into = true
		return args
	case func(): // which refuses it
		into()
	case *filter:
		return into.add(args)
	case *match:
		return into.read(args)
	case *[]broker.PacketTag:
		return addTag(into, args)
	}
	if len(args) == 0 {
		panic(failure("ERR " + o.word + ": expected a value behind it"))
	}
	switch into := o.into.(type) {
	case *int64:
		*into = numberArg(o.word, args[0], o.low, o.high)
	case *[]byte:
		*into = textArg(o.word, args[0], o.low, o.high)
	case *broker.State:
		*into = stateArg(args[0])
	}
	return args[1:]
}

func stateArg(arg []byte) broker.State {
	for state := broker.Ready; state <= broker.Damaged; state++ {
		if is(arg, state.String()) {
			return state
		}
	}
	panic(failure(fmt.Sprintf("ERR STATE: expected ready, delayed, claimed, dead, done or damaged, got %q", quoted(arg))))
}

const errTagBytes = "ERR TAG: expected names and values of at most %d bytes together"

// addTag reads what follows TAG, and returns the arguments behind that.
func addTag(tags *[]broker.PacketTag, args [][]byte) (rest [][]byte) {
	switch {
	case len(args) < 2:
		refuse("ERR TAG: expected a name and a value behind it")
	case len(args[0]) == 0:
		refuse("ERR TAG: expected a name that is not empty")
	case len(*tags) == broker.MaxTags:
		refuse("ERR TAG: expected at most %d tags", broker.MaxTags)
	case len(args[0])+len(args[1]) > broker.MaxTagBytes:
		refuse(errTagBytes, broker.MaxTagBytes)
	}
	*tags = append(*tags, broker.PacketTag{Name: string(args[0]), Value: string(args[1])})
	return args[2:]
}

// sortTags brings tags into the order of their names.
func sortTags(tags []broker.PacketTag) {
	slices.SortFunc(tags, func(a, b broker.PacketTag) int { return cmp.Compare(a.Name, b.Name) })
	bytes := 0
	for i, t := range tags {
		if bytes += len(t.Name) + len(t.Value); bytes > broker.MaxTagBytes {
			refuse(errTagBytes, broker.MaxTagBytes)
		}
		if i > 0 && tags[i-1].Name == t.Name {
			refuse("ERR TAG: expected each name once, got %q twice", quoted([]byte(t.Name)))
		}
	}
}

// checkWhen refuses more than one of the options that say when a packet is ready: a time that is
// not negative, or DEAD.
func checkWhen(delay, at int64, dead bool) {
	if delay >= 0 && at >= 0 || dead && max(delay, at) >= 0 {
		refuse("ERR DELAY, AT, DEAD: expected one of them")
	}
}

// idArg reads the id of a packet.
func idArg(arg []byte) broker.ID {
	n, ok := wire.ParseInt(arg)
	if !ok {
		refuse("ERR id: expected the id of a packet, as QPUSH replies with it, got %q", quoted(arg))
	}
	return broker.ID(n)
}

// idArgs reads the ids of some packets.
func idArgs(args [][]byte) []broker.ID {
	if len(args) > broker.MaxCount {
		refuse("ERR id: expected at most %d, got %d", broker.MaxCount, len(args))
	}
	ids := make([]broker.ID, len(args))
	for i, arg := range args {
		ids[i] = idArg(arg)
	}
	return ids
}

// receiptArgs reads pairs of an id and a token. They are valid until the next call.
func (p *Protocol) receiptArgs(args [][]byte) []broker.Receipt {
	switch {
	case len(args)%2 != 0:
		refuse("ERR token: expected one behind each id")
	case len(args)/2 > broker.MaxCount:
		refuse("ERR id: expected at most %d with their tokens, got %d", broker.MaxCount, len(args)/2)
	}
	p.receipts = p.receipts[:0]
	for ; len(args) > 0; args = args[2:] {
		p.receipts = append(p.receipts, broker.Receipt{ID: idArg(args[0]), Token: numberArg("token", args[1], 1, math.MaxInt64)})
	}
	return p.receipts
}
