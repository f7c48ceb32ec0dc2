package storage

import (
	"errors"
	"fmt"
)

// Errors of what a folder holds.
var (
	// ErrRecord means that bytes are not a record of the format.
	ErrRecord = errors.New("not a valid record")
	// errDamaged means that something of a folder cannot be read as what it should be.
	errDamaged = errors.New("the data folder is damaged")
	// errLoss means that something is missing that was acknowledged.
	errLoss = errors.New("acknowledged batches are missing")
)

// Unreadable is what is wrong with one record. Who reads many may go on with the next one.
type Unreadable struct {
	Name string // of what it is about
	Err  error  // wraps ErrDamaged
}

func (u *Unreadable) Error() string { return u.Err.Error() }
func (u *Unreadable) Unwrap() error { return u.Err }

// badKey says that a key is not one of some kind of record.
func badKey(key []byte, kind string) error {
	return &Unreadable{fmt.Sprintf("%x", key), fmt.Errorf("%w: %x is not the key of %s", errDamaged, key, kind)}
}
