package ask

import (
	"strings"
	"testing"
)

func TestEventsAreSaidInWords(t *testing.T) {
	for event, want := range map[string]string{
		`{"event":"missed","at":1790000000000,"messages":12}`:                                                      "missed - - - 12 events left out: too many at once, or read too slowly",
		`{"event":"old","at":1790000000000,"database":3,"queue":"jobs","age_ms":301000}`:                           "old - - - queue jobs of database 3, the oldest packet waits for 5m1s",
		`{"event":"memory","at":1790000000000,"state":"fine"}`:                                                     "memory - - - the memory fine",
		`{"event":"disk","at":1790000000000,"state":"refuses pushes"}`:                                             "disk - - - the disk refuses pushes",
		`{"event":"background","at":1790000000000,"error":"sync: EIO"}`:                                            "background - - - sync: EIO",
		`{"event":"moved","at":1790000000000,"database":0,"queue":"q","id":"4","priority":0,"bytes":0,"to":"a b"}`: "moved 4 0 0 queue q, to a b",
	} {
		line, err := (&Tail{}).line([]byte(event))
		if got := strings.Join(strings.Fields(string(line))[1:], " "); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", event, got, err, want)
		}
	}
	if _, err := (&Tail{}).line([]byte("{")); err == nil {
		t.Error("half an object is an event")
	}
}
