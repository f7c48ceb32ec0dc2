package sim

import (
	"os"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/fuzz/crash/mutant"
)

// planted names the fault between the machine and the store, "" if there is none.
func planted() string { return os.Getenv("MUTANT") }

// coat returns the store, with the fault before it.
func (w *world) coat(s daemon.Store) daemon.Store {
	if planted() == "" {
		return s
	}
	coat, err := mutant.Wrap(planted())
	w.must("a mutant", err)
	return coat(s)
}
