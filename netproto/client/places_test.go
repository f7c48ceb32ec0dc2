package client

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

func TestTheStatesAreThoseOfTheWords(t *testing.T) {
	for i, s := range []State{StateReady, StateDelayed, StateClaimed, StateDead, StateDone, StateDamaged} {
		if string(s) != words.PacketStates[i].Name {
			t.Errorf("state %d is %s, in the words %s", i, s, words.PacketStates[i].Name)
		}
	}
}

func TestEachWordHasAPlaceOfItsOwn(t *testing.T) {
	types := map[words.Kind][]string{
		words.Gauge: {"*int64"}, words.Size: {"*int64"}, words.Total: {"*int64"}, words.Flag: {"*bool"},
		words.Number: {"*int64", "*int", "*uint32"}, words.Percent: {"*int"}, words.Moment: {"*time.Time"}, words.Span: {"*time.Duration"},
		words.Text: {"*string", "*client.State"}, words.Bytes: {"*[]uint8"}, words.Pairs: {"*map[string]string"},
	}
	seen := make(map[any]bool)
	own := func(f words.Field, place any) {
		if seen[place] || !slices.Contains(types[f.Kind], fmt.Sprintf("%T", place)) {
			t.Errorf("%s is read into a %T, or into the place of another", f.Name, place)
		}
		seen[place] = true
	}
	var p Packet
	for i, place := range p.fields() {
		own(words.PacketFields[i], place)
	}
	var s Stats
	for i, f := range words.QueueFigures {
		own(f, s.figure(i))
	}
}
