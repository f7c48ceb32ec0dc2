package ask

import (
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

func TestTheStatesOfAFlagAreThoseOfTheWords(t *testing.T) {
	all := ""
	for _, s := range words.PacketStates {
		all += "," + s.Name
	}
	movable := strings.NewReplacer(",claimed", "", ",damaged", "").Replace(all)
	for command, want := range map[reflect.Type]string{reflect.TypeFor[List](): all, reflect.TypeFor[Purge](): all, reflect.TypeFor[Move](): movable} {
		field, _ := command.FieldByName("State")
		if got := field.Tag.Get("enum"); got != want {
			t.Errorf("--state of %s takes %q, the words have %q", command.Name(), got, want)
		}
	}
}
