package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-queue/holdfast/storage/disk"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// Restoration makes a data folder of Files. Until Keep the folder is none that Open takes.
type Restoration struct {
	folder *folder
	made   bool // the folder was not there before
}

// ErrKept: Keep made the folder, whole and in its place, and could not sync its name or tidy up.
var ErrKept = errors.New("the folder is whole and in its place, but its name may not be on disk, or something is left in it")

// restoringName is the folder in the folder where all files are until Keep. What a kill leaves is
// not taken for a data folder, since it has no format.
const restoringName = "restoring"

// Restore begins to make the data folder dir, which is empty or not there, of files whose sizes add
// up to bytes. Keep or Discard must follow. The error wraps ErrFull if the disk has no room for
// them, ErrNotEmpty if something is in dir, and ErrNotFolder if another restore left that.
func Restore(dir string, bytes int64) (_ *Restoration, err error) {
	err = disk.Mkdir(dir, 0o700)
	r := &Restoration{made: err == nil}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("cannot make the data folder: %w", err)
	}
	if r.folder, err = findFolder(dir); err != nil {
		return nil, err
	}
	if err := r.claim(); err != nil {
		r.folder.close()
		return nil, err
	}
	if err := r.begin(bytes); err != nil {
		r.Discard()
		return nil, err
	}
	return r, nil
}

// claim takes the lock of a folder that holds nothing. The folder of somebody else stays as it is.
func (r *Restoration) claim() error {
	if err := r.folder.vacant(); err != nil {
		return err
	}
	if err := r.folder.takeLock(); err != nil {
		return err
	}
	return r.folder.vacant() // a server may have come and gone
}

// vacant refuses a folder that holds something.
func (f *folder) vacant() error {
	entries, err := disk.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("cannot read the data folder: %w", err)
	}
	for _, e := range entries {
		switch e.Name() {
		case "lost+found", lockName: // a file system's own folder, and what a look at the folder leaves
		case restoringName:
			return fmt.Errorf("%w: %s holds %q of a restore that is under way or was killed; if none is, remove the folder", ErrNotFolder, f.path, e.Name())
		default:
			return fmt.Errorf("%w: %s holds %q; give a folder that is empty or not there", ErrNotEmpty, f.path, e.Name())
		}
	}
	return nil
}

func (r *Restoration) begin(bytes int64) error {
	if err := r.hasRoom(bytes); err != nil {
		return err
	}
	for _, name := range []string{"", journalName, dbName} {
		if err := disk.Mkdir(r.path(name), 0o700); err != nil {
			return full(fmt.Errorf("cannot make a folder: %w", err))
		}
	}
	return nil
}

func (r *Restoration) hasRoom(bytes int64) error {
	free, _, err := DiskSpace(r.folder.path)
	if err == nil && free < bytes {
		err = fmt.Errorf("%w: the files have %d bytes, and %d are free below %s", ErrFull, bytes, free, r.folder.path)
	}
	return err
}

// Again begins to add the files of a later moment, whose sizes add up to bytes. Of those that were
// added only tables stay.
func (r *Restoration) Again(bytes int64) error {
	err := r.hasRoom(bytes)
	for _, name := range []string{formatName, anchorName, journalName, listName} {
		err = cmp.Or(err, disk.RemoveAll(r.path(name)))
	}
	return cmp.Or(err, disk.Mkdir(r.path(journalName), 0o700))
}

// Tables returns the list of the tables that were added.
func (r *Restoration) Tables() ([]byte, error) { return disk.ReadFile(r.path(listName)) }

func (r *Restoration) path(name string) string {
	return filepath.Join(r.folder.name(restoringName), filepath.FromSlash(name))
}

// Add writes a file, whose name IsFile, to the disk.
func (r *Restoration) Add(name string, content io.Reader) error {
	file, err := disk.OpenFile(r.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("cannot make a file: %w", err)
	}
	_, err = io.Copy(file, content)
	return full(errors.Join(err, file.Sync(), file.Close()))
}

// Keep makes the folder one that Open takes, from one moment to the next. After an error all that
// was made is gone, as after Discard; after one that wraps ErrKept the folder stays.
func (r *Restoration) Keep() (err error) {
	for _, name := range []string{journalName, dbName, ""} {
		err = errors.Join(err, syncName(r.path(name)))
	}
	for _, name := range []string{anchorName, journalName, dbName} {
		if err == nil {
			err = disk.Rename(r.path(name), r.folder.name(name))
		}
	}
	if err == nil {
		err = r.folder.syncDir()
	}
	if err == nil {
		err = disk.Rename(r.path(formatName), r.folder.name(formatName))
	}
	if err != nil {
		r.Discard()
		return fmt.Errorf("cannot put the files in their places: %w", err)
	}
	defer r.folder.close()
	if err := errors.Join(r.folder.syncDir(), syncNameOf(r.folder.path), disk.Remove(r.path(""))); err != nil {
		return fmt.Errorf("%w: %w", ErrKept, err)
	}
	return nil
}

// Discard removes what was made.
func (r *Restoration) Discard() {
	for _, name := range []string{anchorName, journalName, dbName, restoringName, lockName} {
		_ = disk.RemoveAll(r.folder.name(name))
	}
	if r.made {
		_ = disk.Remove(r.folder.path)
	}
	r.folder.close()
}

// Replace puts the files of another data folder in the place of those of dir. It lies in the same
// file system, and nobody has it open. After a kill a second call goes on. Where from is not
// there it does nothing, and where Keep did not make it, it only removes it.
func Replace(dir, from string) error {
	if _, err := disk.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil // also while others look at dir
	}
	f, err := findFolder(dir)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.takeLock(); err != nil {
		return err
	}
	if IsEmpty(from) {
		return disk.RemoveAll(from)
	}
	// From here on only a second call, or the rest of this one, makes dir a data folder again.
	err = cmp.Or(disk.RemoveAll(f.name(formatName)), f.syncDir(), disk.RemoveAll(f.name(buildName)))
	for _, name := range []string{anchorName, journalName, dbName} {
		there := filepath.Join(from, name)
		if _, gone := disk.Stat(there); gone != nil || err != nil {
			continue // it has moved before
		}
		if err = disk.RemoveAll(f.name(name)); err == nil {
			err = disk.Rename(there, f.name(name))
		}
	}
	if err == nil {
		err = f.syncDir()
	}
	if err == nil {
		err = disk.Rename(filepath.Join(from, formatName), f.name(formatName))
	}
	if err = cmp.Or(err, f.syncDir()); err != nil {
		return fmt.Errorf("cannot put a copy in its place: %w", err)
	}
	return disk.RemoveAll(from)
}

// Floor returns the last batch that tables of the data folder dir have on the device, whatever its
// journal has; 0 if there is no folder.
func Floor(dir string) (uint64, error) {
	list, err := tables.ReadList(filepath.Join(dir, dbName))
	if err != nil {
		return 0, damaged(err)
	}
	return list.Floor.Batch, nil
}

// IsEmpty says whether a data folder has nothing that Open would find.
func IsEmpty(dir string) bool {
	_, err := disk.Stat(filepath.Join(dir, formatName))
	return errors.Is(err, fs.ErrNotExist)
}
