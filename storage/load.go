package storage

// The load record says that a load into the store is under way. It is written by the batches of the
// load, so that one cut short can be taken back. While it is there the store holds a part of
// something, and Open refuses it. What is in it is the business of whoever loads; here it is bytes.

// SetLoad writes the load record with this batch, copying rec; nil or empty removes it. Within one
// batch the last call wins.
func (b *Batch) SetLoad(rec []byte) { b.setOnly(loadKey, rec) }

// Load returns the load record of the last batch applied, or of the store as it was opened; nil
// when there is none. The caller does not change it.
func (s *Store) Load() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load
}
