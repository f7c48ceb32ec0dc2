package words

// Kind says what a number is, and so how people read it.
type Kind uint8

// The kinds of numbers.
const (
	Gauge Kind = iota // packets that there are now
	Size              // bytes that there are now
	Total             // packets that there were, ever: it has a rate
)

// Figure is a number that the server tells of a queue.
type Figure struct {
	Name string
	Kind Kind
	Says string
}

// The places of the figures in QueueFigures.
const (
	Ready = iota
	Hidden
	Delayed
	Claimed
	Dead
	Done
	Damaged
	Bytes
	Pushed
	Popped
	Acked
	Nacked
	Expired
	Died
	Dropped
	Figures // how many there are
)

// QueueFigures are the figures of a queue, in the order in which QSTAT tells them.
var QueueFigures = [Figures]Figure{
	Ready:   {"ready", Gauge, "packets that a consumer may take"},
	Hidden:  {"hidden", Gauge, "packets that are ready, but of priority 0"},
	Delayed: {"delayed", Gauge, "packets that wait for their moment"},
	Claimed: {"claimed", Gauge, "packets that consumers hold"},
	Dead:    {"dead", Gauge, "packets that died, and are still here"},
	Done:    {"done", Gauge, "packets that were acknowledged, and are kept"},
	Damaged: {"damaged", Gauge, "packets that cannot be read"},
	Bytes:   {"bytes", Size, "keys and payloads of all these"},
	Pushed:  {"pushed", Total, "packets that came in"},
	Popped:  {"popped", Total, "packets that were taken without a claim"},
	Acked:   {"acked", Total, "packets that were claimed and acknowledged"},
	Nacked:  {"nacked", Total, "packets that were claimed and returned"},
	Expired: {"expired", Total, "packets that expired"},
	Died:    {"died", Total, "packets that were tried too often"},
	Dropped: {"dropped", Total, "packets that a full queue dropped"},
}
