package storage

import (
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

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
}

// countersRoom is at least what the record takes.
const countersRoom = 80

func appendCounters(dst []byte, c *Counters) []byte {
	return appendNumbers(dst, 0, false, c.Pushed, c.Popped, c.Acked, c.Nacked, c.Expired, c.Dead, c.Dropped)
}

func decodeCounters(rec []byte, c *Counters) error {
	_, err := decodeNumbers(rec, &c.Pushed, &c.Popped, &c.Acked, &c.Nacked, &c.Expired, &c.Dead, &c.Dropped)
	return err
}

// decodeOld reads the six counters that a definition of before version 5 has in one field.
func (c *Counters) decodeOld(d *msgpack.Decoder) error {
	var old []uint64
	if err := d.Decode(&old); err != nil {
		return err
	}
	if len(old) != 6 {
		return fmt.Errorf("%d counters instead of 6", len(old))
	}
	c.Pushed, c.Popped, c.Acked, c.Nacked, c.Expired, c.Dead = old[0], old[1], old[2], old[3], old[4], old[5]
	return nil
}
