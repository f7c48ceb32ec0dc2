package client

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
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

func TestTheFieldsOfStructsAreThoseOfTheWords(t *testing.T) {
	types := map[words.Kind][]string{
		words.Gauge: {"int64"}, words.Size: {"int64"}, words.Total: {"int64"}, words.Flag: {"bool"},
		words.Number: {"int64", "int", "uint32", "time.Duration"}, words.Percent: {"int"}, words.Moment: {"time.Time"}, words.Span: {"time.Duration"},
		words.Text: {"string", "client.State"}, words.Bytes: {"[]uint8"}, words.Pairs: {"map[string]string"}, words.Texts: {"[]string"}, words.Rows: {"[]client.Wait"},
	}
	others := map[string]string{"last-error-class": "errorclass", "progress": "percent", "progress-text": "percenttext"}
	for _, check := range []struct {
		of    reflect.Type
		table []words.Field
	}{
		{reflect.TypeFor[Packet](), words.PacketFields[:]}, {reflect.TypeFor[Stats](), words.QueueFigures[:]}, {reflect.TypeFor[Consumer](), words.ConsumerFields[:]},
		{reflect.TypeFor[Pusher](), words.ProducerFields[:]}, {reflect.TypeFor[Share](), words.ShareFields[:]},
	} {
		for i, f := range check.table {
			got, want := check.of.Field(i), cmp.Or(others[f.Name], strings.ReplaceAll(f.Name, "-", ""))
			if strings.ToLower(got.Name) != want || !slices.Contains(types[f.Kind], got.Type.String()) {
				t.Errorf("%s is read into %s.%s, a %s", f.Name, check.of, got.Name, got.Type)
			}
		}
	}
}
