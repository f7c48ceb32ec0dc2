package load

import (
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/holdfast-queue/holdfast/storage"
)

// checkpoint says how far a load has come. It is the load record of the store (DUMP.md, section
// load record). Each batch writes it in one transaction with its packets, so what it says is
// stored.
type checkpoint struct {
	Version int  `msgpack:"version"`
	Merge   bool `msgpack:"merge"`

	// Offset is how many bytes of the dump are stored, and Hash is their xxhash64. A load goes on only
	// with a dump that begins with these bytes.
	Offset int64  `msgpack:"offset"`
	Hash   uint64 `msgpack:"hash"`

	Packets int64  `msgpack:"packets"`
	Queues  int64  `msgpack:"queues"`
	Expired int64  `msgpack:"expired"`
	Base    uint64 `msgpack:"base"` // of a merge: the folder's next sequence before it

	Keys    int64  `msgpack:"keys"`     // strings and hashes
	Taken   int64  `msgpack:"taken"`    // strings and hashes that were left out: their names were taken
	KeyBase uint64 `msgpack:"key_base"` // the last number of a key in the folder before the load

	QueueBase uint32 `msgpack:"queue_base"` // the folder's next queue before the load; 0: not known
}

const checkpointVersion = 1

func (c *checkpoint) encode() ([]byte, error) {
	rec, err := msgpack.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the checkpoint: %w", err)
	}
	return rec, nil
}

// decodeCheckpoint reads a load record. Its errors wrap storage.ErrLoadUnfinished: nobody can go on
// with that load, but it can be abandoned.
func decodeCheckpoint(rec []byte) (checkpoint, error) {
	var c checkpoint
	if err := msgpack.Unmarshal(rec, &c); err != nil {
		return c, fmt.Errorf("%w, and it can only be abandoned: %w: its checkpoint cannot be read: %w",
			storage.ErrLoadUnfinished, storage.ErrDamaged, err)
	}
	if c.Version != checkpointVersion {
		return c, fmt.Errorf("%w: %w: it was begun by a version of holdfast with other checkpoints (version %d, expected %d): go on with that one",
			storage.ErrLoadUnfinished, storage.ErrNewerFormat, c.Version, checkpointVersion)
	}
	return c, nil
}
