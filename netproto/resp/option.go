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

// parseOptions reads the options of a command, which takes some. An error says what was expected.
func parseOptions(args [][]byte, takes ...option) (err error) {
	given := uint32(0)
	for len(args) > 0 {
		i := findOption(takes, args[0])
		if i < 0 || takes[i].into == nil {
			return unknownOption(args[0], takes)
		}
		o := &takes[i]
		if given&(1<<i) != 0 && o.word != "TAG" && o.word != "FILTER" {
			return failure("ERR " + o.word + ": expected it once only")
		}
		given |= 1 << i
		if args, err = o.read(args[1:]); err != nil {
			return err
		}
	}
	for i := range takes {
		switch into := takes[i].into.(type) {
		case *filter:
			err = into.check()
		case *[]broker.PacketTag:
			err = sortTags(*into)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func unknownOption(word []byte, takes []option) error {
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
	return failure(fmt.Sprintf("ERR unknown option %q: expected %s", quoted(word), expected))
}

// read reads what follows an option, and returns the arguments behind that.
func (o *option) read(args [][]byte) (rest [][]byte, err error) {
	switch into := o.into.(type) {
	case *bool:
		*into = true
		return args, nil
	case *filter:
		return into.add(args)
	case *match:
		return into.read(args)
	case *[]broker.PacketTag:
		return addTag(into, args)
	}
	if len(args) == 0 {
		return nil, failure("ERR " + o.word + ": expected a value behind it")
	}
	switch into := o.into.(type) {
	case *int64:
		*into, err = numberArg(o.word, args[0], o.low, o.high)
	case *[]byte:
		*into, err = args[0], checkText(o.word, args[0], o.low, o.high)
	case *broker.State:
		*into, err = stateArg(args[0])
	}
	return args[1:], err
}

// numberArg reads a whole number from low to high; what names it in an error.
func numberArg(what string, arg []byte, low, high int64) (int64, error) {
	n, ok := parseInt(arg)
	if !ok || n < low || n > high {
		return 0, failure("ERR " + what + fmt.Sprintf(": expected a number from %d to %d, got %q", low, high, quoted(arg)))
	}
	return n, nil
}

func checkText(what string, arg []byte, low, high int64) error {
	if n := int64(len(arg)); n < low || n > high {
		return failure("ERR " + what + fmt.Sprintf(": expected %d to %d bytes, got %d", low, high, n))
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

var errTagBytes = failure(fmt.Sprintf("ERR TAG: expected names and values of at most %d bytes together", broker.MaxTagBytes))

// addTag reads what follows TAG, and returns the arguments behind that.
func addTag(tags *[]broker.PacketTag, args [][]byte) (rest [][]byte, err error) {
	switch {
	case len(args) < 2:
		return nil, failure("ERR TAG: expected a name and a value behind it")
	case len(args[0]) == 0:
		return nil, failure("ERR TAG: expected a name that is not empty")
	case len(*tags) == broker.MaxTags:
		return nil, failure(fmt.Sprintf("ERR TAG: expected at most %d tags", broker.MaxTags))
	case len(args[0])+len(args[1]) > broker.MaxTagBytes:
		return nil, errTagBytes
	}
	*tags = append(*tags, broker.PacketTag{Name: string(args[0]), Value: string(args[1])})
	return args[2:], nil
}

// sortTags brings tags into the order of their names.
func sortTags(tags []broker.PacketTag) error {
	slices.SortFunc(tags, func(a, b broker.PacketTag) int { return cmp.Compare(a.Name, b.Name) })
	bytes := 0
	for _, t := range tags {
		bytes += len(t.Name) + len(t.Value)
	}
	if bytes > broker.MaxTagBytes {
		return errTagBytes
	}
	for i := 1; i < len(tags); i++ {
		if tags[i-1].Name == tags[i].Name {
			return failure(fmt.Sprintf("ERR TAG: expected each name once, got %q twice", quoted([]byte(tags[i].Name))))
		}
	}
	return nil
}

// checkWhen refuses more than one of the options that say when a packet is ready: a time that is
// not negative, or DEAD.
func checkWhen(delay, at int64, dead bool) error {
	if delay >= 0 && at >= 0 || dead && max(delay, at) >= 0 {
		return failure("ERR DELAY, AT, DEAD: expected one of them")
	}
	return nil
}

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
