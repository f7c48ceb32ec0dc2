package peer

import (
	"context"
	"sync"
)

// Owner is the node that clients are passed to. Any goroutine may call its methods.
type Owner struct {
	mu      sync.Mutex
	address string          // of its own port; "": nobody owns
	term    context.Context // ends when that changes
	end     context.CancelFunc
}

// NewOwner makes one of whom nothing is known yet.
func NewOwner() *Owner {
	o := &Owner{}
	o.term, o.end = context.WithCancel(context.Background())
	return o
}

// Set says who owns now: the address of its own port, "" for nobody. What was passed to another one
// is closed.
func (o *Owner) Set(address string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if address != o.address {
		o.end()
		o.address = address
		o.term, o.end = context.WithCancel(context.Background())
	}
}

// get returns the address, and what ends with it.
func (o *Owner) get() (address string, term context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.address, o.term
}
