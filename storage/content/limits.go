package content

// What a folder may hold.
const (
	// MaxName bounds the bytes of the name of a queue, a string or a hash: the length fields of
	// pinpriq have 16 bits, and a dump repeats the name with each packet or field.
	MaxName = 1<<16 - 1
	// MaxPayload bounds a payload, whatever a server is told to take: a packet is in memory a few
	// times while it is written and read, and a batch and a table have it whole.
	MaxPayload = 64 << 20
	// MaxRecord bounds the full record of a packet: a payload with names, tags and numbers. MaxItem
	// bounds the record of a string or a field, whose value has 1 MiB at most: it may be patched in
	// place.
	MaxRecord = MaxPayload + moreThanValue
	MaxItem   = 1<<20 + moreThanValue
	// moreThanValue bounds the rest of a record.
	moreThanValue = 1 << 17
	// MaxQueues bounds what clients can make a server remember of names.
	MaxQueues = 1 << 20
	// MaxNameBytes bounds the bytes of all queue names together.
	MaxNameBytes = 256 << 20
	// MaxUnique bounds the bytes of the id of a unique push.
	MaxUnique = 255
	// MaxOrders bounds the tags whose values a queue declares, and MaxOrderBytes the bytes of those
	// tags and values together: each change of the queue's settings writes them.
	MaxOrders     = 16
	MaxOrderBytes = 16 << 10
)

// Limits say when a batch is full: the next call then begins another one. What one call brings goes
// into one batch, whatever its size.
type Limits struct {
	MaxOps   int // entries: Batch.Len
	MaxBytes int // Batch.Bytes
}
