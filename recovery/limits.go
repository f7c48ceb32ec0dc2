package recovery

// What a server holds of queues, and so what a dump may hold and a merge may come to.
const (
	// MaxQueues bounds what clients can make the server remember of names.
	MaxQueues = 1 << 20
	// MaxNameBytes bounds the bytes of all queue names together.
	MaxNameBytes = 256 << 20
)
