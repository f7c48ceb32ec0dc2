package cell

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

// A part is
//
//	1 byte   1 if it is the last one of its content, else 0
//	8 bytes  xxhash64 of the content, big endian
//	         a piece of the content
//
// It has at most 256 KiB: etcd keeps the last entries of raft in memory, whatever their size.
const (
	partHead = 9
	maxPart  = 256 << 10
	aside    = 8 // parts that are put at once
)

// split returns the parts of a content, at least one.
func split(content [][]byte) (parts []string, sum uint64) {
	rest := bytes.Join(content, nil)
	sum = xxhash.Sum64(rest)
	for last := false; !last; {
		n := min(len(rest), maxPart-partHead)
		part := binary.BigEndian.AppendUint64(make([]byte, 1, partHead+n), sum)
		if last = n == len(rest); last {
			part[0] = 1
		}
		parts, rest = append(parts, string(append(part, rest[:n]...))), rest[n:]
	}
	return parts, sum
}

var errMoved = errors.New("the owner is another, or a key changed meanwhile")

// Append adds the next batch to the log: its content, in pieces, which it does not keep. nil: a
// majority has it on disk. Any error wraps ErrFenced and ends the claim; whether the log has the
// batch is then not known. It waits until etcd has decided, or the claim ends. One goroutine
// appends.
func (t *Term) Append(batch uint64, content [][]byte) error {
	if err := t.Err(); err != nil {
		return err
	}
	if batch != t.last+1 {
		return t.fail(fmt.Errorf("batch %d was to be appended, expected %d", batch, t.last+1))
	}
	parts, sum := split(content)
	end := len(parts) - 1
	next := head{Batch: batch, Fence: t.fence, Sum: sum}
	err := t.putParts(batch, parts[:end])
	if err == nil {
		err = t.log.try(t.ctx, func(ctx context.Context) error {
			return t.commit(ctx, next, clientv3.OpPut(keyPart(batch, end), parts[end]), put(keyHead, next))
		})
	}
	if err != nil {
		return t.fail(fmt.Errorf("batch %d: %w", batch, err))
	}
	return nil
}

// mine is the fence: what it guards is not done unless the claim stands. It compares the mod
// revision, which is that of the creation unless somebody wrote over the key.
func (t *Term) mine() clientv3.Cmp { return unchanged(keyOwner, t.fence) }

// fenced begins a transaction that does nothing unless the claim stands and the log ends where it
// is known to end. So a try does nothing that was given up and comes late.
func (t *Term) fenced(ctx context.Context) clientv3.Txn {
	return t.log.Client.Txn(ctx).If(t.mine(), unchanged(keyHead, t.head))
}

// putParts puts the parts of a batch before the last one.
func (t *Term) putParts(batch uint64, parts []string) error {
	var puts errgroup.Group
	puts.SetLimit(aside)
	for i, part := range parts {
		puts.Go(func() error {
			return t.log.try(t.ctx, func(ctx context.Context) error {
				r, err := t.fenced(ctx).Then(clientv3.OpPut(keyPart(batch, i), part)).Commit()
				if err == nil && !r.Succeeded {
					err = errMoved
				}
				return err
			})
		})
	}
	return puts.Wait()
}

// commit puts the last part of a batch, and head. Only head tells whether an earlier try did so
// whose answer was lost: another claim of this node may have appended a batch of the same number.
func (t *Term) commit(ctx context.Context, next head, puts ...clientv3.Op) error {
	r, err := t.fenced(ctx).Then(puts...).Else(clientv3.OpGet(keyHead)).Commit()
	if err != nil {
		return err
	}
	revision := r.Header.Revision
	if !r.Succeeded {
		var found head
		if revision, err = value(r.Responses[0].GetResponseRange().Kvs, &found); err != nil {
			return err
		}
		if found != next {
			return fmt.Errorf("%w: the log ends at batch %d, of claim %d", errMoved, found.Batch, found.Fence)
		}
	}
	t.last, t.head = next.Batch, revision
	return nil
}
