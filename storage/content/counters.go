package content

// Counters are what a queue has done since it was made. They do not run backwards over a restart
// but by what was counted in the second before a kill. They have a record of their own: a
// definition with all its settings is not written anew each second.
type Counters struct { // with the names that dumps have for them
	Pushed  uint64 `json:"pushed" msgpack:"pushed"`
	Popped  uint64 `json:"popped" msgpack:"popped"`
	Acked   uint64 `json:"acked" msgpack:"acked"`
	Nacked  uint64 `json:"nacked" msgpack:"nacked"`
	Expired uint64 `json:"expired" msgpack:"expired"`
	Dead    uint64 `json:"dead" msgpack:"dead"`
	Dropped uint64 `json:"dropped,omitempty" msgpack:"dropped,omitempty"` // by a full queue

	Cancelled uint64 `json:"cancelled,omitempty" msgpack:"cancelled,omitempty"`
}

// AppendCounters appends the record of c to dst.
func AppendCounters(dst []byte, c *Counters) []byte {
	return appendNumbers(dst, 0, c.Pushed, c.Popped, c.Acked, c.Nacked, c.Expired, c.Dead, c.Dropped, c.Cancelled)
}

// DecodeCounters reads a record into c. The error wraps ErrRecord.
func DecodeCounters(rec []byte, c *Counters) error {
	_, err := decodeNumbers(rec, &c.Pushed, &c.Popped, &c.Acked, &c.Nacked, &c.Expired, &c.Dead, &c.Dropped, &c.Cancelled)
	return err
}
