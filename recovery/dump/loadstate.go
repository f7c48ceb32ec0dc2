package dump

import (
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/holdfast-queue/holdfast/storage"
)

// loadState is how far a load has come. It is the load record of the store (DUMP.md, section load
// record), written by each batch in one transaction with the packets: what it says is what is there.
type loadState struct {
	Version int  `msgpack:"version"`
	Merge   bool `msgpack:"merge"`

	// Offset bytes of the dump are in the store and Hash is their xxhash64, so that a load goes on
	// with no other dump than one that begins like the first.
	Offset int64  `msgpack:"offset"`
	Hash   uint64 `msgpack:"hash"`

	Packets int64  `msgpack:"packets"`
	Queues  int64  `msgpack:"queues"`
	Expired int64  `msgpack:"expired"`
	Base    uint64 `msgpack:"base"` // of a merge: the store's next sequence before it
}

const loadVersion = 1

// errLoadRecord means that nobody here can go on with the load that the record is of.
var errLoadRecord = errors.New("abandon the load with --abandon, which keeps the part of the dump that is stored")

// maxLoadRecord is far more bytes than the record of a load takes.
const maxLoadRecord = 4096

func (s *loadState) encode() ([]byte, error) {
	rec, err := msgpack.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the load record: %w", err)
	}
	return rec, nil
}

func decodeLoadState(rec []byte) (loadState, error) {
	var s loadState
	if len(rec) > maxLoadRecord {
		return s, fmt.Errorf("%w: the load record has %d bytes, at most %d were expected; %w", storage.ErrDamaged, len(rec), maxLoadRecord, errLoadRecord)
	}
	if err := msgpack.Unmarshal(rec, &s); err != nil {
		return s, fmt.Errorf("%w: the load record cannot be read: %w; %w", storage.ErrDamaged, err, errLoadRecord)
	}
	if s.Version != loadVersion {
		return s, fmt.Errorf("%w: the load was begun by a version of holdfast with other load records (%d, here %d); go on with that version, or %w",
			storage.ErrNewerFormat, s.Version, loadVersion, errLoadRecord)
	}
	return s, nil
}
