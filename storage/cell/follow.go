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
	r := reading{log: l, batch: after + 1, fn: fn}
	return l.watch(ctx, keyHead, func(ctx context.Context) (isDone bool, err error) {
		for more := true; more && err == nil; {
			more, err = r.next(ctx)
		}
		return r.isRefused, err
	})
}

// reading is where a Follow is in the log.
type reading struct {
	log       *Log
	batch     uint64   // what comes next
	parts     [][]byte // of it, so far
	fn        func(batch uint64, content []byte) error
	isRefused bool // fn has failed
}

// next reads some parts, and says whether there are more. At the revision that it reads either the
// cut is not before the batch, or all of the batch is there, or it is not in the log.
func (r *reading) next(ctx context.Context) (more bool, err error) {
	s, err := r.log.read(ctx, local, clientv3.OpGet(keyPart(r.batch, len(r.parts)),
		clientv3.WithRange(endLog), clientv3.WithLimit(ranged), clientv3.WithSerializable()))
	if err != nil {
		return false, err
	}
	if s.begin >= r.batch {
		return false, fmt.Errorf("%w: batch %d comes next, and it begins behind %d", ErrCut, r.batch, s.begin)
	}
	parts := s.answers[0].GetResponseRange()
	for _, kv := range parts.Kvs {
		if r.batch > s.end.Batch {
			return false, nil // what follows is of an Append that is not decided
		}
		if want := keyPart(r.batch, len(r.parts)); string(kv.Key) != want {
			return false, fmt.Errorf("%w: key %s is missing, before %s", ErrDamaged, want, kv.Key)
		}
		if err := r.add(kv.Value, s.end); err != nil {
			return false, err
		}
	}
	if r.batch <= s.end.Batch && !parts.More {
		return false, fmt.Errorf("%w: key %s is missing, and head is batch %d", ErrDamaged, keyPart(r.batch, len(r.parts)), s.end.Batch)
	}
	return r.batch <= s.end.Batch, nil
}

// add takes the next part, and hands the batch over if it is the last one.
func (r *reading) add(part []byte, end head) error {
	if len(part) < partHead || part[0] > 1 {
		return fmt.Errorf("%w: key %s is no part of a content", ErrDamaged, keyPart(r.batch, len(r.parts)))
	}
	r.parts = append(r.parts, part[partHead:])
	if part[0] == 0 {
		return nil
	}
	content := bytes.Join(r.parts, nil)
	want, got := binary.BigEndian.Uint64(part[1:]), xxhash.Sum64(content)
	if got != want || r.batch == end.Batch && got != end.Sum {
		return fmt.Errorf("%w: the content of batch %d has the sum %x, the part %x, and head %x of batch %d",
			ErrDamaged, r.batch, got, want, end.Sum, end.Batch)
	}
	if err := r.fn(r.batch, content); err != nil {
		r.isRefused = true
		return err
	}
	r.batch, r.parts = r.batch+1, nil
	return nil
}
