package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// backupFolder is where a timer puts its backups: each has the moment at which it began for a name,
// and the oldest go.
type backupFolder struct {
	dir  string
	keep int    // how many backups stay, the new one included; 0: all
	ext  string // of what is made; others stay
}

// folderOf is the folder that a name means, "" if that is a file's.
func folderOf(name string) (string, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return filepath.Clean(name), nil
	case strings.HasSuffix(name, "/") && err != nil:
		return "", fmt.Errorf("write backups into %s: %w; make the folder first", name, terminal.Pathless(err))
	}
	return "", nil
}

// backupTime has a width of its own, so that names sort by it.
const backupTime = "20060102T150405.000Z"

// backupName matches the names of backups in a folder. The last group is their kind.
var backupName = regexp.MustCompile(`^holdfast-\d{8}T\d{6}\.\d{3}Z\.([a-z]+)$`)

// name is that of a backup which begins now.
func (f *backupFolder) name(now time.Time) string {
	return filepath.Join(f.dir, "holdfast-"+now.UTC().Format(backupTime)+"."+f.ext)
}

// backups are the names of those of the kind, the oldest first.
func (f *backupFolder) backups() ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	var names []string
	for _, e := range entries {
		if kind := backupName.FindStringSubmatch(e.Name()); kind != nil && (f.ext == "" || kind[1] == f.ext) && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// prune removes the oldest backups, but never the one that was just made, whatever the clock says.
func (f *backupFolder) prune(made string) (removed int, err error) {
	if f.keep == 0 {
		return 0, nil
	}
	names, err := f.backups()
	names = slices.DeleteFunc(names, func(name string) bool { return name == filepath.Base(made) })
	for len(names) >= f.keep && err == nil {
		err = os.Remove(filepath.Join(f.dir, names[0]))
		if errors.Is(err, os.ErrNotExist) { // another timer was faster
			err = nil
		}
		names = names[1:]
		removed++
	}
	if err != nil {
		return removed, fmt.Errorf("%s is whole, but older backups cannot be removed: %w", made, err)
	}
	return removed, nil
}

// abandoned is how long nobody has written a file before it counts as left behind by a kill. A
// server ends a backup that rests for half a minute.
const abandoned = time.Hour

// sweep removes what backups that were killed have left behind: they may fill the disk.
func (f *backupFolder) sweep(now time.Time) {
	entries, _ := os.ReadDir(f.dir)
	for _, e := range entries {
		hidden, _ := filepath.Match(terminal.TemporaryFiles, e.Name())
		if info, err := e.Info(); hidden && err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > abandoned {
			_ = os.Remove(filepath.Join(f.dir, e.Name()))
		}
	}
}
