package ask

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

func TestRatesAreThoseOfCounters(t *testing.T) {
	before := &round{of: map[string]client.Stats{"q": {Ready: 1, Pushed: 10}}, took: 2 * time.Second}
	var out strings.Builder
	if err := printStats(&out, []queueStats{{"q", client.Stats{Ready: 9, Pushed: 15}}}, before); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nready            9\n", "\npushed           15 (2.5/s)\n", "\nacked            0 (0.0/s)\n", "\nbytes            0\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed\n%swant %q in it", out.String(), want)
		}
	}
}

func TestTheBusiestQueuesComeFirst(t *testing.T) {
	all := func() []queueStats {
		return []queueStats{
			{"idle", client.Stats{Ready: 9, Pushed: 100, Age: time.Minute}}, {"new", client.Stats{Claimed: 1, Pushed: 6}},
			{"back", client.Stats{Nacked: 4, Dead: 3}}, {"out", client.Stats{Popped: 5, Acked: 5}}, {"empty", client.Stats{}},
		}
	}
	for want, before := range map[string]*round{
		"out 0.0 5.0 0.0, new 3.0 0.0 0.0, back 0.0 0.0 2.0, empty 0.0 0.0 0.0, idle 0.0 0.0 0.0": {of: map[string]client.Stats{"idle": {Pushed: 100}}, took: 2 * time.Second},
		"idle - - -, out - - -, new - - -, back - - -, empty - - -":                               {},
	} {
		var out strings.Builder
		if err := printBusiest(&out, all(), before, true); err != nil {
			t.Fatal(err)
		}
		var rows []string
		for line := range strings.Lines(out.String()) {
			cells := strings.Fields(line)
			rows = append(rows, strings.Join([]string{cells[0], cells[7], cells[8], cells[9]}, " "))
		}
		if got := strings.Join(rows[1:], ", "); got != want {
			t.Errorf("printed\n%s\nwant %s", out.String(), want)
		}
	}
}
