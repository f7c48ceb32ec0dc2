package storage

import (
	"testing"

	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestAStoreInStepsDoesNothingByItself(t *testing.T) {
	var s *Store
	asked := 0
	s = openTest(t, t.TempDir(), Options{Window: 16 << 10, Stepped: func() { asked++; s.Step(StepFlush) }})
	for seq := range uint64(20) {
		applied(t, s, one(seq, content.Packet{Identity: seq + 1, Payload: make([]byte, 1000)}))
	}
	if list := s.tables.List(); list.Window > 0 || s.layers.oldest() == nil || asked > 0 {
		t.Fatalf("before a step %d windows are in tables, and %d times the store waited", list.Window, asked)
	}
	if !s.Step(StepFlush) || s.tables.List().Window != 1 {
		t.Error("a step writes no window out")
	}
	n, err := s.Snapshot()
	if err != nil || asked == 0 {
		t.Fatalf("a snapshot asked %d times for what it waits for: %v", asked, err)
	}
	n.Close()
	for step := range Steps {
		if s.Step(step) {
			t.Errorf("there was something to do for step %d", step)
		}
	}
	if err := s.Close(); err != nil || s.Step(StepFlush) {
		t.Errorf("a closed store does a step: %v", err)
	}
}
