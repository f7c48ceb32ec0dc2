package cell

import (
	"context"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Status is what the cell is at one moment.
type Status struct {
	Owner     Owner
	Head, Cut uint64            // the last batch of the log, and the one up to which it was cut
	Floors    map[string]uint64 // by node: the batch up to which its tables have everything
	Members   []Peer
	// Majority says that a majority has answered. If not, all this is what the node's own member has,
	// and may be old.
	Majority bool
}

// Status asks a majority, for a quarter of a lease, and then the node's own member.
func (l *Log) Status(ctx context.Context) (Status, error) {
	once, cancel := context.WithTimeout(ctx, l.Lease/4)
	defer cancel()
	s, err := l.status(once, nil)
	if s.Majority = err == nil; err != nil {
		s, err = l.status(ctx, local)
	}
	return s, err
}

func (l *Log) status(ctx context.Context, opts []clientv3.OpOption) (s Status, err error) {
	now, err := l.read(ctx, opts, clientv3.OpGet(keyOwner, opts...), clientv3.OpGet(prefixFloor, append(opts, clientv3.WithPrefix())...))
	if err != nil {
		return s, err
	}
	s.Head, s.Cut, s.Floors = now.end.Batch, now.begin, make(map[string]uint64)
	if s.Owner.Fence, err = value(now.answers[0].GetResponseRange().Kvs, &s.Owner); err != nil {
		return s, err
	}
	for _, kv := range now.answers[1].GetResponseRange().Kvs {
		var batch uint64
		if _, err := value([]*mvccpb.KeyValue{kv}, &batch); err != nil {
			return s, err
		}
		s.Floors[strings.TrimPrefix(string(kv.Key), prefixFloor)] = batch
	}
	members, err := l.Client.MemberList(ctx, opts...)
	if err == nil {
		s.Members = peers(members)
	}
	return s, err
}
