package cell

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Hold keeps the log from being cut behind a batch, for a copy that has it: until EndHold, or for
// 10 s behind the last PutNode. Another Hold takes its place. ErrCut: the log begins later.
func (l *Log) Hold(ctx context.Context, batch uint64) error {
	l.lease.Lock()
	defer l.lease.Unlock()
	return l.try(ctx, func(ctx context.Context) error {
		if err := l.keepLease(ctx); err != nil {
			return err
		}
		for {
			s, err := l.read(ctx, nil)
			if err != nil {
				return err
			}
			if batch < s.begin {
				return fmt.Errorf("%w: the copy has batch %d, and it begins behind %d", ErrCut, batch, s.begin)
			}
			r, err := l.Client.Txn(ctx).If(unchanged(keyCut, s.cut)).
				Then(put(prefixCopy+l.Node, batch, clientv3.WithLease(l.lease.id))).Commit()
			if err != nil || r.Succeeded {
				return err
			}
		}
	})
}

// EndHold ends what Hold began.
func (l *Log) EndHold(ctx context.Context) error {
	_, err := l.Client.Delete(ctx, prefixCopy+l.Node)
	return err
}
