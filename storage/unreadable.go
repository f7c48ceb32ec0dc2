package storage

import "fmt"

// Unreadable is what is wrong with one record. Who reads many may go on with the next one.
type Unreadable struct {
	Name string // of what it is about
	Err  error  // wraps ErrDamaged
}

func (u *Unreadable) Error() string { return u.Err.Error() }
func (u *Unreadable) Unwrap() error { return u.Err }

// badKey says that a key is not one of some kind of record.
func badKey(key []byte, kind string) error {
	return &Unreadable{fmt.Sprintf("%x", key), fmt.Errorf("%w: %x is not the key of %s", ErrDamaged, key, kind)}
}
