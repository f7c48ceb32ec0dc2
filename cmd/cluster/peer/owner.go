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
	gone    time.Time       // since when it cannot be reached; 0: it can
	silent  time.Time       // since when it has not answered what Ask asks; 0: it has
	term    context.Context // ends when address changes
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
		o.address, o.gone, o.silent = address, time.Time{}, time.Time{}
		o.term, o.end = context.WithCancel(context.Background())
	}
}

// get returns the address, and what ends with it.
func (o *Owner) get() (address string, term context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.address, o.term
}

// Gone says whether the owner's process has ended, or cannot be reached, as Attend finds before
// etcd tells that its claim is over. For longer than that time only the link to it can be cut.
func (o *Owner) Gone(within time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.gone.IsZero() && time.Since(o.gone) < within
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
			switch {
			case one.Err() != nil || o.term != term:
			case !gone:
				o.gone = time.Time{}
			case o.gone.IsZero():
				o.gone = time.Now()
			}
		}
		pause := stallTime
		if address != "" {
			var unreached *url.Error
			if gone := errors.As(c.stay(one, address, func() { finds(false) }), &unreached); gone {
				finds(true)
				pause = retryTime
			} // else it refuses, as an earlier version does
		}
		select {
		case <-time.After(pause):
		case <-one.Done():
		}
		stop()
		end()
	}
}

// askPause is how often Ask asks, and how long it waits for an answer.
const askPause = 500 * time.Millisecond

// Ask asks the owner what it is, again and again until ctx ends: the way to it may be closed where
// its process lives, and what Attend keeps open does not tell.
func (o *Owner) Ask(ctx context.Context, c *Client) {
	for ctx.Err() == nil {
		address, term := o.get()
		begun, err := time.Now(), error(nil)
		once, end := context.WithTimeout(ctx, askPause)
		if address != "" {
			_, err = c.Node(once, address)
		}
		o.mu.Lock()
		switch {
		case o.term != term || ctx.Err() != nil:
		case err == nil:
			o.silent = time.Time{}
		case o.silent.IsZero():
			o.silent = begun
		}
		o.mu.Unlock()
		select {
		case <-time.After(askPause):
		case <-ctx.Done():
		}
		end()
	}
}

// Silent says whether the owner has not answered for some time.
func (o *Owner) Silent(within time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.silent.IsZero() && time.Since(o.silent) >= within
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
