package broker

// A queue has a gate at each end. Pushes pass the one, and takes the other: a queue that is paused
// keeps what it has, and one that is closed gets nothing more. Reads see everything.

// gateIn says why a queue takes nothing in from the caller.
func (tx *Tx) gateIn(q *queue, l load) error {
	s := q.settings
	if s == nil || l.packets == 0 { // what is there may change
		return nil
	}
	if err := tx.useRole(q, producerRole); err != nil {
		return err
	}
	if s.PauseIn {
		return ErrPaused
	}
	return nil
}

// gives says that packets of a queue may be taken now.
func (q *queue) gives() bool { return q.settings == nil || !q.settings.PauseOut }

// giver is findQueue for a take: it returns nil as well if the queue gives nothing now. ErrInUse if
// the caller is not its only consumer.
func (tx *Tx) giver(name []byte) (*queue, error) {
	q, err := tx.b.findQueue(name)
	if q == nil || err != nil {
		return nil, err
	}
	if err := tx.useRole(q, consumerRole); err != nil {
		return nil, err
	}
	if !q.gives() {
		return nil, nil
	}
	return q, nil
}

// Available is how many elements of a list a take may have; 0 for an unknown name. ErrInUse.
func (tx *Tx) Available(name []byte) (int, error) {
	q, err := tx.giver(name)
	if q == nil || err != nil {
		return 0, err
	}
	return tx.b.ix.Counts(q.ix).Ready, nil
}
