package ask

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

func TestBenchReportsSayWhatWasLeft(t *testing.T) {
	for name, c := range map[string]struct {
		report benchReport
		want   string
	}{
		"one item":      {benchReport{Items: 1}, " in all, 1 item, 0.00 s\n"},
		"items":         {benchReport{Items: 2}, " in all, 2 items, 0.00 s\n"},
		"packets":       {benchReport{Size: 16}, " in all, 16-byte payloads, 0.00 s\n"},
		"found nothing": {benchReport{Groups: []benchGroup{{Name: "update"}, {Name: "next", Empty: 1}, {Name: "pop", Empty: 2}}}, " s\n1 more request of next found nothing\n2 more requests of pop found nothing\n"},
		"queue left":    {benchReport{Queue: "q"}, " s\nwhat nobody took is left in queue q\n"},
	} {
		var out strings.Builder
		if err := c.report.print(&out, false); err != nil || !strings.HasSuffix(out.String(), c.want) {
			t.Errorf("%s: printed %q (%v), want the end %q", name, out.String(), err, c.want)
		}
	}
}

func TestBenchSaysThatItCouldNotRemoveEverything(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections wait to be accepted: whatever the limit, nothing is removed in it
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	addr := silent.Addr().String()
	c := Bench{}
	w := workload{server: loadgen.Spec{Addr: addr}, where: "in queue \"q\"", take: c.group("pop", func() loadgen.Protocol { return loadgen.PinpriqPop("q") })}
	if err := c.clean(t.Context(), &w, time.Millisecond); err == nil || !strings.Contains(err.Error(), `left in queue "q": they could not all be removed in 1ms`) {
		t.Errorf("%v, want an error that says where packets are left", err)
	}
}
