package storage

import (
	"os/exec"
	"sync"
	"testing"
)

func TestFolderCanBeOpenedAgainAtOnceWhileChildrenAreStarted(t *testing.T) {
	name, err := exec.LookPath("true")
	if err != nil {
		t.Skip("skipped: there is no program to start")
	}
	stop := make(chan struct{})
	var started sync.WaitGroup
	defer started.Wait()
	defer close(stop)
	for range 4 {
		started.Go(func() { // ends with stop
			for {
				select {
				case <-stop:
					return
				default:
					_ = exec.Command(name).Run()
				}
			}
		})
	}
	dir := t.TempDir()
	for range 40 {
		s, err := Open(dir, Options{MemTable: minMemTable, Sync: SyncNever()})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
