package resp

// SentinelName is the name in logs of the protocol that NewSentinel makes.
const SentinelName = "sentinel"

// Cell is what the clients of Redis Sentinel are told: addresses of a cell's nodes, HOST:PORT. Its
// functions are called in the loop, so they do not wait.
type Cell struct {
	Name string // by which clients ask
	// Owner returns the address for Redis clients of the node that owns the queues; "" while none
	// does. An unspecified host, as 0.0.0.0, stands for the one by which the client has come.
	Owner func() string
	// Others returns the Sentinel addresses of the other nodes; nil: there are none.
	Others func() []string

	told string // the owner that those who listen know; "" if none
}

// nodes is how many the cell has.
func (c *Cell) nodes() int { return 1 + len(c.others()) }

func (c *Cell) others() []string {
	if c.Others == nil {
		return nil
	}
	return c.Others()
}
