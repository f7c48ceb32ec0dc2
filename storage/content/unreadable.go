package content

import (
	"errors"
	"fmt"
)

// Errors of what a folder holds.
var (
	// ErrRecord means that bytes are not a record of the format.
	ErrRecord = errors.New("not a valid record")
	// ErrDamaged means that something of a folder cannot be read as what it should be.
	ErrDamaged = errors.New("the data folder is damaged")
	// ErrLoss means that something is missing that was acknowledged.
	ErrLoss = errors.New("acknowledged batches are missing")
)

// Unreadable says what is wrong with one record. A reader of many may go on with the next one.
type Unreadable struct {
	Name string // of what it is about
	Err  error  // wraps ErrDamaged
}

// Error says what is wrong.
func (u *Unreadable) Error() string { return u.Err.Error() }

// Unwrap returns what it wraps.
func (u *Unreadable) Unwrap() error { return u.Err }

// badKey says that a key is not one of some kind of record.
func badKey(key []byte, kind string) error {
	return &Unreadable{fmt.Sprintf("%x", key), fmt.Errorf("%w: %x is not the key of %s", ErrDamaged, key, kind)}
}
