package resp

// SentinelName is the name in logs of the protocol that NewSentinel makes.
const SentinelName = "sentinel"

// Cell is what the clients of Redis Sentinel are told. They know the addresses of all nodes by
// themselves, so each node tells of no other Sentinel than itself.
type Cell struct {
	Name string // by which clients ask
	// Owner returns the address for Redis clients of the node that owns the queues, HOST:PORT; ""
	// while none does. An unspecified host, as 0.0.0.0, stands for the one by which the client has
	// come. It is called in the loop, so it does not wait.
	Owner func() string

	told string // the owner that those who listen know; "" if none
}
