package broker

// DropQueue is dropQueue for tests outside.
func (tx *Tx) DropQueue(name []byte) { tx.b.dropQueue(tx.b.queueNamed(name)) }

// RenameQueue is renameQueue for tests outside. What has the name to is dropped first.
func (tx *Tx) RenameQueue(from, to []byte) {
	if q := tx.b.queueNamed(to); q != nil && string(from) != string(to) {
		tx.b.dropQueue(q)
	}
	tx.b.renameQueue(tx.b.queueNamed(from), to)
}

// WorkersKnown is how many consumers of all queues have a number.
func (tx *Tx) WorkersKnown() int { return len(tx.b.workers.all) - len(tx.b.workers.free) }

// Dropped is how many queues, strings and hashes the sweeper has before it.
func (tx *Tx) Dropped() int { return len(tx.b.dropped) + len(tx.b.leftovers) }
