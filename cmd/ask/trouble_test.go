package ask

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

func TestTroublesAreOfFiguresThatThereAre(t *testing.T) {
	for _, trouble := range words.Troubles {
		for _, name := range slices.DeleteFunc(append([]string{trouble.Counts, trouble.Note}, trouble.Any...), func(name string) bool { return name == "" }) {
			if !slices.ContainsFunc(words.QueueFigures[:], func(f words.Field) bool { return f.Name == name }) {
				t.Errorf("%q goes by %q, which is no figure", trouble.Many, name)
			}
		}
	}
}

func TestATroubleIsSaidAsOnThePage(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	taken := func(ago time.Duration, s client.Stats) client.Stats {
		s.Taken = now.Add(-ago)
		return s
	}
	for want, all := range map[string][]queueStats{
		"1 packet is dead: a (1)":          {{"a", client.Stats{Dead: 1}}},
		"4 packets are dead: b (3), a (1)": {{"a", client.Stats{Dead: 1}}, {"b", client.Stats{Dead: 3}}},
		"2007 packets that died elsewhere are in a dead-letter queue: graves (2007)": {
			{"graves", taken(time.Hour, client.Stats{Ready: 2007, DiedElsewhere: 2007, Age: time.Hour})}},
		"The oldest packet is older than the alert-age of its queue: b (2h), a (1h)": {
			{"a", client.Stats{Overdue: true, Age: time.Hour}}, {"b", client.Stats{Overdue: true, Age: 2 * time.Hour}}},
		"Queues are full: f (7 ready), e (6 ready), d (5 ready), c (4 ready), b (3 ready) and 2 more": {
			{"z", client.Stats{Full: true}}, {"a", client.Stats{Full: true}}, {"b", client.Stats{Full: true, Ready: 3}}, {"c", client.Stats{Full: true, Ready: 4}},
			{"d", client.Stats{Full: true, Ready: 5}}, {"e", client.Stats{Full: true, Ready: 6}}, {"f", client.Stats{Full: true, Ready: 7}}},
		"Queues are paused: a (2 ready)": {{"a", client.Stats{PausedOut: true, Ready: 2}}, {"empty", client.Stats{PausedIn: true}}},
		"Nobody has taken packets for a minute or more: a (2 ready)": {
			{"a", taken(61*time.Second, client.Stats{Ready: 2, Age: time.Hour})}, {"new", taken(time.Hour, client.Stats{Ready: 2, Age: time.Minute})},
			{"taken", taken(time.Minute, client.Stats{Ready: 2, Age: time.Hour})}, {"claimed", taken(time.Hour, client.Stats{Ready: 2, Claimed: 1, Age: time.Hour})}},
		"": {{"fine", taken(time.Hour, client.Stats{Done: 3, Claimed: 1, Delayed: 2})}},
	} {
		var said []string
		for i := range words.Troubles {
			trouble := &words.Troubles[i]
			if is := slices.DeleteFunc(slices.Clone(all), func(q queueStats) bool { return !troubled(trouble, &q.Stats, now) }); len(is) > 0 {
				said = append(said, sentence(trouble, is))
			}
		}
		if want == "" && said != nil || want != "" && !slices.Equal(said, []string{want}) {
			t.Errorf("said %q, want %q", said, want)
		}
	}
}
