package main

import (
	"errors"

	"github.com/holdfast-queue/holdfast/storage"
)

// remedy says what a user can do about an error, which names no flag itself. It is empty for an
// error that is not known.
func remedy(err error) string {
	for _, r := range []struct {
		is   error
		text string
	}{
		{storage.ErrLoadUnfinished, "run the same \"holdfast load\" again to go on with it, or \"holdfast load --abandon\" to keep the part that is stored"},
		{storage.ErrLoss, "restore a copy; or write what can be read with \"holdfast dump --salvage\" and load that into a new folder; " +
			"or give --accept-loss to go on with what is left and give the rest up for good"},
		{storage.ErrDamaged, "restore a copy, or write what can be read with \"holdfast dump --salvage\" and load that into a new folder"},
	} {
		if errors.Is(err, r.is) {
			return "; " + r.text
		}
	}
	return ""
}
