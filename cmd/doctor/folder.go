package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/storage"
)

// existing is what there is of a path.
func existing(path string) (at string, info fs.FileInfo, err error) {
	at = path
	info, err = os.Stat(at)
	for errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		info, err = os.Stat(at)
	}
	return at, info, err
}

// lookAtFolder checks a data folder, or the place where it will be made.
func lookAtFolder(path string) []Finding {
	at, info, err := existing(path)
	access := unix.Access(at, unix.R_OK|unix.W_OK|unix.X_OK)
	f := seen("folder", "%s is its owner's alone", path)
	switch {
	case err != nil:
		f = seen("folder", "cannot be read: %v", err).but(true, Bad, "name a folder that the server's user may read")
	case !info.IsDir():
		f = seen("folder", "%s is not a folder", at).but(true, Bad, "name another one")
	case access != nil:
		f = seen("folder", "%s: %v", at, access).but(true, Bad, "run this as the server's user, or give it the folder (chown)")
	case at != path:
		f.Seen = path + " does not exist yet: the server makes it"
	case info.Mode().Perm()&0o077 != 0:
		f = seen("folder", "%s has mode %04o: others can read packets there", path, info.Mode().Perm()).but(true, Warn, "chmod 700 %s", path)
	}
	findings := []Finding{f}
	if f.Verdict == Bad {
		return findings
	}
	if kind, ok := fileSystem(at); ok {
		findings = append(findings, kind)
	}
	if took, err := measureSyncs(at); err != nil {
		findings = append(findings, unseen("sync", fmt.Errorf("cannot be measured: %w", err), "run this as the server's user"))
	} else {
		findings = append(findings, syncOf(took))
	}
	used, _ := storage.Sizes(path) // nothing where no server was yet, and only what this user can read
	if !used.Newest.IsZero() {
		findings = append(findings, timesOf(used.Newest, time.Now()))
	}
	free, total, err := storage.DiskSpace(at)
	if err != nil {
		return append(findings, unseen("space", err, "see df"))
	}
	return append(findings, spaceFor(free, total, used.Total))
}

// clockStep is how far a clock may be behind, as where several machines write to one disk.
const clockStep = time.Minute

func timesOf(newest, now time.Time) Finding {
	age := now.Sub(newest).Round(time.Second)
	if age < -clockStep {
		return seen("times", "the clock is %v behind the newest file of the folder: leases and delays end late", -age).but(true, Bad, "set the clock")
	}
	return seen("times", "the newest file of the folder is %v old", max(0, age))
}

func spaceFor(free, total, used int64) Finding {
	least := storage.LeastFree(total)
	return seen("space", "%s of %s are free, the folder takes %s", size(free), size(total), size(used)).
		but(free-least < used, Warn, "have %s free: what replaces old files may take as much as they do", size(used+least)).
		but(free < least, Bad, "free %s more: with less than %s pushes are refused", size(least-free), size(least))
}

// The times of a sync that are no reason to worry. The fastest disks with a cache that survives a
// power cut need more than minSync.
const (
	minSync  = 10 * time.Microsecond
	maxSync  = 20 * time.Millisecond
	deadSync = 200 * time.Millisecond

	syncs    = 50
	syncTime = 2 * time.Second // for all of them
)

// measureSyncs syncs a file that has no name any more, as the journal is synced. One with a name
// would make the folder somebody else's for a server that starts just now.
func measureSyncs(path string) (median time.Duration, err error) {
	file, err := os.CreateTemp(path, "doctor-*.tmp")
	if err != nil {
		return 0, err
	}
	defer file.Close()
	page := make([]byte, 4096)
	if err = os.Remove(file.Name()); err == nil {
		_, err = file.Write(bytes.Repeat(page, syncs)) // so that no sync makes the file longer
	}
	if err == nil {
		err = file.Sync()
	}
	var all []time.Duration
	for begun := time.Now(); err == nil && len(all) < syncs && (len(all) == 0 || time.Since(begun) < syncTime); {
		page[0]++
		if _, err = file.WriteAt(page, int64(len(all)*len(page))); err == nil {
			before := time.Now()
			err = syncData(file)
			all = append(all, time.Since(before))
		}
	}
	if err != nil {
		return 0, err
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

func syncOf(took time.Duration) Finding {
	return seen("sync", "a sync of 4 KiB takes %v", took.Round(100*time.Nanosecond)).
		but(took < minSync, Warn, "no disk is that fast: check that a power cut does not lose what was synced").
		but(took > maxSync, Warn, "take a faster disk: each reply waits for a sync, unless --sync says otherwise").
		but(took > deadSync, Bad, "take another disk: each reply waits for a sync")
}
