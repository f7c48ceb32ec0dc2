package cell

import (
	"context"
)

// Owner is who owns the queues. The zero value is nobody.
type Owner struct {
	Node      string `json:"node"`
	Addresses string `json:"addresses"` // as given to Claim
	// Fence is the revision at which the claim was put. Each later claim has a higher one.
	Fence int64 `json:"-"`
}

// Owner tells who owns, as the node's own member knows it. One that is cut off may name a node that
// no longer does.
func (l *Log) Owner(ctx context.Context) (o Owner, err error) {
	r, err := l.Client.Get(ctx, keyOwner, local...)
	if err != nil {
		return o, err
	}
	o.Fence, err = value(r.Kvs, &o)
	return o, err
}

// OwnerChanged waits until another claim stands than the one given, or none, and returns whose it
// is.
func (l *Log) OwnerChanged(ctx context.Context, from Owner) (Owner, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for bell := l.bell(ctx, keyOwner); ; {
		o, err := l.Owner(ctx)
		if err == nil && o.Fence != from.Fence || err != nil && !isUncertain(err) {
			return o, err
		}
		if !sleep(ctx, look, bell) {
			return from, ctx.Err()
		}
	}
}
