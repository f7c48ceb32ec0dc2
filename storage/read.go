package storage

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// Read calls fn for each of ids, in their order, with the full record of the
// packet, valid during the call, or with nil when there is none. It stops at
// the first error of fn and returns it.
func (s *Store) Read(ids []PacketID, fn func(i int, rec []byte) error) error {
	return s.db.View(func(txn *badger.Txn) error {
		var key, joined []byte
		for i, id := range ids {
			key = appendPacketKey(key[:0], id)
			item, err := txn.Get(key)
			if errors.Is(err, badger.ErrKeyNotFound) {
				if err := fn(i, nil); err != nil {
					return err
				}
				continue
			}
			if err != nil {
				return fmt.Errorf("cannot read packet %v: %w", id, err)
			}
			err = item.Value(func(rec []byte) error {
				at, size, large, err := splitHead(rec)
				if err != nil {
					return fmt.Errorf("packet %v: %w", id, err)
				}
				if !large {
					return fn(i, rec)
				}
				payload, err := readPayload(txn, id, size)
				if err != nil {
					return err
				}
				joined = appendJoined(joined[:0], rec, at, payload)
				return fn(i, joined)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func readPayload(txn *badger.Txn, id PacketID, size uint64) ([]byte, error) {
	item, err := txn.Get(appendPayloadKey(nil, id))
	if err != nil {
		return nil, fmt.Errorf("%w: cannot read the payload of packet %v: %w", ErrDamaged, id, err)
	}
	payload, err := item.ValueCopy(nil)
	if err != nil {
		return nil, fmt.Errorf("%w: cannot read the payload of packet %v: %w", ErrDamaged, id, err)
	}
	if uint64(len(payload)) != size {
		return nil, fmt.Errorf("%w: the payload of packet %v has %d bytes instead of %d", ErrDamaged, id, len(payload), size)
	}
	return payload, nil
}
