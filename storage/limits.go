package storage

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
