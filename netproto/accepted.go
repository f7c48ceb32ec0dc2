package netproto

// Refused is why a connection was refused that has come.
type Refused int

// The reasons.
const (
	RefusedMany      Refused = iota // too many are open
	RefusedOfAddress                // too many of its address are
	RefusedFailed                   // the system could not serve it
	RefusedHandshake                // it did not come to speak TLS
	refusals
)

// String names the reason in one word, for programs.
func (r Refused) String() string {
	return [...]string{RefusedMany: "too_many", RefusedOfAddress: "too_many_of_address", RefusedFailed: "failed", RefusedHandshake: "handshake"}[r]
}

// Accepted counts what became of the connections of a server since the start.
type Accepted struct {
	Served  uint64 // that were let in, also if their handshake failed
	Refused [refusals]uint64
}
