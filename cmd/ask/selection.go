package ask

import (
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// ErrNothing means that a queue has nothing to select.
var ErrNothing = errors.New("nothing")

// selection is the flags of a command that selects packets by their tags, and by their share.
type selection struct {
	Share    *string  `placeholder:"NAME" help:"Only packets of this share of a queue with share-by: those with this key, or this value of its tag."`
	Filter   []string `placeholder:"TAG<=VALUE" sep:"none" help:"Only packets for which this is true, with one of = != < <= > >=. A packet without the tag never matches. May be given more than once."`
	MatchAny int      `word:"MATCH" range:"1" placeholder:"N" help:"Packets for which N or more of the filters are true (default: all of them)."`
}

func (s *selection) Validate() error {
	for _, text := range s.Filter {
		if _, err := client.ParseFilter(text); err != nil {
			return fmt.Errorf("--filter %q: expected a tag, one of = != < <= > >= and a value, such as class<=standard", text)
		}
	}
	if s.MatchAny > len(s.Filter) {
		return fmt.Errorf("--match-any %d: expected 1 to the number of filters, which is %d", s.MatchAny, len(s.Filter))
	}
	return nil
}

func (s *selection) options() (all []client.Option) {
	for _, text := range s.Filter {
		filter, _ := client.ParseFilter(text) // Validate has read it before
		all = append(all, filter)
	}
	return append(append(all, unlessZero(s.MatchAny, client.MatchAny)...), given(s.Share, client.InShare)...)
}

// most is the flags of a command that changes all packets unless it is told how many.
type most struct {
	Count int64 `xor:"count" range:"1 1000" placeholder:"N" help:"At most N packets (default: all)."`
	All   bool  `xor:"count" help:"All packets, as without --count."`
}

// when is an option if something is so, else none.
func when(so bool, option client.Option) []client.Option {
	if !so {
		return nil
	}
	return []client.Option{option}
}

// unlessZero is the option for the value of a flag, none for its zero value.
func unlessZero[T comparable](value T, option func(T) client.Option) []client.Option {
	var zero T
	return when(value != zero, option(value))
}

// given is the option for a flag that was given, whatever its value is.
func given[T any](value *T, option func(T) client.Option) []client.Option {
	if value == nil {
		return nil
	}
	return when(true, option(*value))
}

// inState is the option for a state, none for "".
func inState(state string) []client.Option { return unlessZero(client.State(state), client.InState) }

// atMost is the option for a number of packets, none for 0.
func atMost(n int64) []client.Option { return unlessZero(int(n), client.Count) }
