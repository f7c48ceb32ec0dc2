package storage

import (
	"fmt"
	"path/filepath"
)

// acceptance is told of losses that opening a folder passes over; nil refuses them.
type acceptance func(Finding)

// loss accepts a loss in a file of the database, or returns it as an error that wraps ErrDamaged
// and ErrLoss.
func (a acceptance) loss(kind, name, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if a == nil {
		return fmt.Errorf("%w: %w: %w", ErrDamaged, ErrLoss, err)
	}
	a(Finding{kind, filepath.Join(dbName, filepath.Base(name)), err.Error() + "; " + lostWith})
	return nil
}

// acceptance tells what Open does about losses.
func (s *Store) acceptance() acceptance {
	switch {
	case s.opt.AcceptLoss:
		return s.accepted.add
	case !s.anchor.last.always:
		// Without a flush for every batch a power cut may leave any of the last ones readable, so a
		// hole in a log means nothing.
		return func(Finding) {}
	}
	return nil
}

// Accepted returns the losses that Open met and passed over because of Options.AcceptLoss. It is
// empty without that.
func (s *Store) Accepted() []Finding { return s.accepted.all() }
