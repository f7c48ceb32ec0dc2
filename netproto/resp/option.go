package resp

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// option is one that a command of the work queue takes.
type option struct {
	*words.Option
	// into is where its value goes, which says what that looks like: see read. nil: it is an option of
	// a similar command only.
	into any
}

// findOption returns which option a word names, -1 if none.
func findOption(options []option, word []byte) int {
	for i := range options {
		if w := options[i].Word; len(word) == len(w) && is(word, w) { // quicker than is alone
			return i
		}
	}
	return -1
}

// parseOptions reads the options of a command, which takes some. A failure says what was expected.
func parseOptions(args [][]byte, takes ...option) {
	var given, needy uint32
	var chosen, twice words.Choice
	for len(args) > 0 {
		i := findOption(takes, args[0])
		if i < 0 || takes[i].into == nil {
			refuseOption(args[0], takes)
		}
		o := &takes[i]
		if given&(1<<i) != 0 && !o.Many {
			panic(failure("ERR " + o.Word + ": expected it once only"))
		}
		given |= 1 << i
		twice |= chosen & o.Choice
		chosen |= o.Choice
		if o.Needs != nil {
			needy |= 1 << i
		}
		args = o.read(args[1:])
	}
	for rest := given; rest != 0; rest &= rest - 1 {
		switch into := takes[bits.TrailingZeros32(rest)].into.(type) {
		case *filter:
			into.check()
		case *[]broker.PacketTag:
			sortTags(*into)
		}
	}
	if twice != 0 {
		panic(failure("ERR " + words.Choices[bits.TrailingZeros8(uint8(twice))]))
	}
	for ; needy != 0; needy &= needy - 1 {
		o := takes[bits.TrailingZeros32(needy)]
		if i := slices.IndexFunc(takes, func(t option) bool { return t.Option == o.Needs }); i < 0 || given&(1<<i) == 0 {
			panic(failure("ERR " + o.Word + ": expected " + o.Needs.Word + " with it"))
		}
	}
}

func refuseOption(word []byte, takes []option) {
	var names []string
	for i := range takes {
		if takes[i].into != nil {
			names = append(names, takes[i].Word)
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
	case *int64:
		*into = numberArg(o.Word, o.value(args), o.Low, o.High)
	case *[]byte:
		*into = textArg(o.Word, o.value(args), o.Low, o.High)
	case *broker.State:
		*into = stateArg(o.value(args))
	case *bool:
		*into = true
		return args
	case *shareRate:
		*into = rateArg(o.value(args))
	case *untilClaim:
		*into = holdsArg(o.value(args))
	case func(): // which refuses it
		into()
	case *filter:
		return into.add(args)
	case *match:
		return into.read(args, o.Low, o.High)
	case *[]broker.PacketTag:
		return addTag(into, args)
	}
	return args[1:]
}

// value is the one value of an option.
func (o *option) value(args [][]byte) []byte {
	if len(args) == 0 {
		panic(failure("ERR " + o.Word + ": expected a value behind it"))
	}
	return args[0]
}

func stateArg(arg []byte) broker.State {
	for state := broker.Ready; state <= broker.Damaged; state++ {
		if is(arg, state.String()) {
			return state
		}
	}
	panic(failure(fmt.Sprintf("ERR STATE: expected ready, delayed, claimed, dead, done or damaged, got %q", quoted(arg))))
}

// shareRate is what RATE of a share says; empty: no.
type shareRate []byte

func rateArg(arg []byte) shareRate {
	if is(arg, "no") {
		return shareRate{}
	}
	if err := broker.CheckRate(arg); err != nil {
		refuse("ERR RATE: %v, got %q", err, quoted(arg))
	}
	return arg
}

// untilClaim is what UNTIL of a push says.
type untilClaim bool

func holdsArg(arg []byte) untilClaim {
	if !is(arg, "claim") && !is(arg, "end") {
		refuse("ERR UNTIL: expected claim or end, got %q", quoted(arg))
	}
	return untilClaim(is(arg, "claim"))
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
