package storage

import "github.com/dgraph-io/badger/v4"

// Limits bound one batch. Room for the control record is kept apart.
type Limits struct {
	MaxOps    int // entries: Batch.Len
	MaxBytes  int // Batch.Bytes
	MaxRecord int // bytes of one full record
}

// opBytes is what one entry takes beyond its key and value, in the measure of
// Limits.MaxBytes: Badger's own estimate adds 12 bytes for version and flags.
const opBytes = 16

// controlReserve is kept free in every transaction for the control record and
// the end mark.
const controlReserve = 512

// maxRecord is past the longest frame of any protocol, and below what Badger
// would put into its value log.
const maxRecord = 1 << 20

// limitsOf asks Badger: a transaction holds at most 15 % of a memory table.
func limitsOf(db *badger.DB) Limits {
	const ends = 8 // the control record and the end mark, and some room
	bytes := int(db.MaxBatchSize()) - controlReserve
	return Limits{
		MaxOps:    int(db.MaxBatchCount()) - ends,
		MaxBytes:  bytes,
		MaxRecord: min(maxRecord, bytes) - 2*opBytes - packetKeyLen - payloadKeyLen - largePayload,
	}
}
