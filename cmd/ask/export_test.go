package ask

import (
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestExportLeavesOutWhatCameWithAProducer(t *testing.T) {
	packet := content.Packet{Key: []byte("17"), Producer: "somebody"}
	var out strings.Builder
	e := exporting{out: &out}
	if err := e.packet(content.PacketID{Queue: 1, Priority: 1}, &packet, nil); err != nil || out.Len() > 0 || e.leftOut != 1 {
		t.Errorf("%q was exported (%v), want that it is left out and counted", out.String(), err)
	}
}
