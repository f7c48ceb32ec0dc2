package client

import (
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

func TestEachWordHasAPlaceOfItsOwn(t *testing.T) {
	seen := make(map[any]bool)
	own := func(name string, place any) {
		if place == nil || seen[place] {
			t.Errorf("%s is not read, or into the place of another", name)
		}
		seen[place] = true
	}
	var p Packet
	for i, place := range p.fields() {
		own("the field "+words.PacketFields[i].Name, place)
	}
	var s Stats
	for i, f := range words.QueueFigures {
		own("the figure "+f.Name, s.figure(i))
	}
}
