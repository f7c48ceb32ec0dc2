package broker_test

import (
	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
)

// drawGates gives settings pauses. A queue that was closed stays so.
func (m *workModel) drawGates(t *rapid.T, queue string, s *broker.Settings) {
	sometimes := rapid.SampledFrom([]bool{false, false, true})
	s.PauseIn, s.PauseOut = sometimes.Draw(t, "pause in"), sometimes.Draw(t, "pause out")
	s.Closed = m.settings(queue).Closed
}

// shut returns the error that a queue has for all that comes.
func (m *workModel) shut(queue string) error {
	switch s := m.settings(queue); {
	case s.Closed:
		return broker.ErrQueueClosed
	case s.PauseIn:
		return broker.ErrPaused
	}
	return nil
}

// taken returns what a take takes from a queue.
func (m *workModel) taken(queue string, s broker.Selection) []*task {
	if m.settings(queue).PauseOut {
		return nil
	}
	return m.selected(queue, s)
}

func (m *workModel) close(queue string) {
	s := m.settings(queue)
	closed, err := m.tx.Close([]byte(queue))
	m.check(err)
	m.same("closed", closed, !s.Closed)
	if m.lasting[queue] == nil {
		m.lasting[queue] = &lasting{name: queue}
	}
	s.Closed = true
	m.lasting[queue].Settings = s
}

func (m *workModel) compareGates(queue string) {
	drained := m.settings(queue).Closed && len(m.in(queue, unfinished)) == 0
	m.same("drained", m.tx.Drained([][]byte{[]byte(queue)}), drained)
}
