package peer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Owner is the node that clients are passed to. Any goroutine may call its methods.
type Owner struct {
	mu      sync.Mutex
	address string          // of its own port; "": nobody owns
	gone    bool            // it cannot be reached
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
		o.address, o.gone = address, false
		o.term, o.end = context.WithCancel(context.Background())
	}
}

// get returns the address, and what ends with it.
func (o *Owner) get() (address string, term context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.address, o.term
}

// Gone says whether the owner's process has ended, or cannot be reached, as Attend finds at once.
// etcd tells only when its claim is over.
func (o *Owner) Gone() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gone
}

// Attend keeps a request to the owner open until ctx ends.
func (o *Owner) Attend(ctx context.Context, c *Client) {
	for ctx.Err() == nil {
		address, term := o.get()
		one, end := context.WithCancel(ctx)
		stop := context.AfterFunc(term, end)
		finds := func(gone bool) {
			o.mu.Lock()
			defer o.mu.Unlock()
			if one.Err() == nil && o.term == term {
				o.gone = gone
			}
		}
		if address != "" {
			var unreached *url.Error // else it refuses, as an earlier version does
			finds(errors.As(c.stay(one, address, func() { finds(false) }), &unreached))
		}
		select {
		case <-time.After(retryTime):
		case <-one.Done():
		}
		stop()
		end()
	}
}

// stay makes a request that ends with the other node's process. stays is called when it is there.
func (c *Client) stay(ctx context.Context, address string, stays func()) error {
	response, err := c.do(ctx, http.MethodGet, address, "/stay", nil, nil, http.StatusOK)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	stays()
	_, err = io.Copy(io.Discard, response.Body)
	return &url.Error{Op: "stay", URL: address, Err: cmp.Or(err, io.EOF)}
}

// stay answers, and says no more until who asked is gone, or this node.
func (s *Server) stay(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}
