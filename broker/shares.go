package broker

import (
	"bytes"
	"fmt"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Share returns what one share of a queue has of its own, nothing if neither is known.
func (tx *Tx) Share(queue, name []byte) (Share, error) {
	q, err := tx.open(queue, looks)
	if err != nil || q == nil || q.shares.byName[string(name)] == nil {
		return Share{Name: name}, err
	}
	return *q.shares.byName[string(name)], nil
}

// SetShare says what one share of a queue has of its own, whether packets of it are there or not.
// That lasts until it is set to nothing, or the queue is deleted. The queue gets settings of its
// own by it, and is made if nothing is called so, as by SetSettings.
func (tx *Tx) SetShare(queue []byte, s Share) error {
	m := tx.m
	if err := tx.CanStore(); err != nil {
		return err
	}
	q, err := tx.open(queue, looks)
	if err != nil {
		return err
	}
	var was *Share
	if q != nil {
		was = q.shares.byName[string(s.Name)]
	}
	switch {
	case len(s.Name) > MaxShareName:
		return fmt.Errorf("%w: the name of a share has at most %d bytes, this one %d", ErrTooLarge, MaxShareName, len(s.Name))
	case was == nil && s.Empty():
		return nil
	case was == nil && q != nil && len(q.shares.all) >= MaxShares:
		return fmt.Errorf("%d shares of the queue have something of their own, and no more can: reset some", MaxShares)
	case q == nil || q.own == nil:
		settings, _, err := tx.Settings(queue)
		if err == nil {
			err = tx.SetSettings(queue, settings)
		}
		if err != nil {
			return err
		}
		q = m.queueNamed(queue)
	}
	if s.Weight == 1 {
		s.Weight = 0
	}
	if s.Name = bytes.Clone(s.Name); s.Empty() {
		q.shares.forget(was)
		m.open.ops.DeleteShare(was.ShareID)
	} else {
		s.ShareID = content.ShareID{Queue: q.id}
		if was != nil {
			s.ShareID = was.ShareID
		}
		q.shares.put(&s)
		m.open.ops.PutShare(&s, was == nil)
	}
	m.ix.SetShare(q.ix, string(s.Name), recovery.ShareOwn(&s))
	m.changed(q)
	return nil
}
