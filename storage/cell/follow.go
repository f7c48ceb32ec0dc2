package cell

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ranged is how many parts are read at once.
const ranged = 32

// Follow calls fn with the content of each batch behind after, in order, each once and whole, and
// waits for more until ctx ends; then it returns ctx.Err(). It reads what the node's own member
// has. fn may keep the content; its error ends Follow and is returned. ErrCut: the log begins
// later. ErrDamaged: a batch is not what was appended; fn was not called for it, and none behind
// it.
func (l *Log) Follow(ctx context.Context, after uint64, fn func(batch uint64, content []byte) error) error {
	var pieces [][]byte // of the batch that comes next, so far
	// At each revision the cut is not before a batch, or all of it is there, or none of it is decided.
	return l.watch(ctx, keyHead, func(ctx context.Context) (isDone bool, err error) {
		for {
			s, err := l.read(ctx, local, clientv3.OpGet(keyPart(after+1, len(pieces)),
				clientv3.WithRange(endLog), clientv3.WithLimit(ranged), clientv3.WithSerializable()))
			if err != nil {
				return false, err
			}
			if s.begin > after {
				return false, fmt.Errorf("%w: they have batch %d, and it begins behind %d", ErrCut, after, s.begin)
			}
			parts := s.answers[0].GetResponseRange()
			for _, kv := range parts.Kvs {
				if after >= s.end.Batch {
					break // what follows is of an Append that is not decided
				}
				if want := keyPart(after+1, len(pieces)); string(kv.Key) != want || len(kv.Value) < partHead {
					return false, fmt.Errorf("%w: expected a part at key %s, found %s with %d bytes", ErrDamaged, want, kv.Key, len(kv.Value))
				}
				if pieces = append(pieces, kv.Value[partHead:]); kv.Value[0] == 0 {
					continue
				}
				content := bytes.Join(pieces, nil)
				want, got := binary.BigEndian.Uint64(kv.Value[1:]), xxhash.Sum64(content)
				if got != want || after+1 == s.end.Batch && got != s.end.Sum {
					return false, fmt.Errorf("%w: the content of batch %d has the sum %x, the part %x, and head %x of batch %d",
						ErrDamaged, after+1, got, want, s.end.Sum, s.end.Batch)
				}
				if err := fn(after+1, content); err != nil {
					return true, err
				}
				after, pieces = after+1, nil
			}
			if after >= s.end.Batch {
				return false, nil
			}
			if !parts.More {
				return false, fmt.Errorf("%w: key %s is missing, and head is batch %d", ErrDamaged, keyPart(after+1, len(pieces)), s.end.Batch)
			}
		}
	})
}
