package storage

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/journal"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

const listName = dbName + "/" + tables.ListName

// Files holds the files of a data folder as a kill would leave them after one batch, whatever is
// written later. They are closed before the store: while they are open, what they hold takes room
// on the disk, deleted or not.
type Files struct {
	List []File

	control  content.Control
	mark     anchorMark
	view     *tables.View
	segments *journal.Hold
}

// File is a file of a data folder.
type File struct {
	Name string // its path in the folder, with slashes
	Size int64  // in bytes
	// Content reads the file, once. Instead of io.EOF it gives an error that wraps ErrDamaged if a
	// table is not what was written.
	Content io.Reader
}

// Files returns the files after the last batch that Apply wrote. It waits for nothing but a batch
// under way, and needs no room on the disk. It gives an error when the store has stopped, and one
// that wraps ErrDamaged if the journal is not what was written.
func (s *Store) Files() (*Files, error) {
	f, err := s.moment()
	if err != nil {
		return nil, err
	}
	list, err := f.view.Encode()
	if err == nil {
		err = damaged(f.segments.Check(floorMark(f.view.List)))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	var anchor [anchorSize]byte
	encodeAnchor(anchor[:anchorSlot], f.mark)
	f.add(formatName, []byte(strconv.Itoa(content.FormatVersion)+"\n"))
	f.add(anchorName, anchor[:])
	f.add(listName, list)
	for i, t := range f.view.List.Tables {
		f.List = append(f.List, File{path.Join(dbName, t.Name()), t.Size, damaging{f.view.Reader(i)}})
	}
	for _, segment := range f.segments.Segments {
		if segment.Number >= f.view.List.Floor.Segment {
			name := fmt.Sprintf("%s/%016d.log", journalName, segment.Number)
			f.List = append(f.List, File{name, segment.Size, segment.Reader()})
		}
	}
	return f, nil
}

// moment holds what the store has between two batches.
func (s *Store) moment() (_ *Files, err error) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	_ = s.begin() // an error of it is the state
	f := &Files{}
	if f.control, err = s.state(); err != nil {
		return nil, fmt.Errorf("no files of a store that has stopped: %w", err)
	}
	f.mark = s.mark(f.control.Batch)
	// The journal first: what follows the tables of a later moment is in it, too.
	if f.segments, err = s.journal.Hold(); err != nil {
		return nil, fmt.Errorf("cannot hold the journal: %w", err)
	}
	f.view = s.tables.View()
	return f, nil
}

func (f *Files) add(name string, b []byte) {
	f.List = append(f.List, File{name, int64(len(b)), bytes.NewReader(b)})
}

// Control returns the control record.
func (f *Files) Control() content.Control { return f.control }

// LeaveOut drops the tables that Restoration.Tables listed; none if list is empty.
func (f *Files) LeaveOut(list []byte) error {
	if len(list) == 0 {
		return nil
	}
	known, err := f.view.Known(list)
	f.List = slices.DeleteFunc(f.List, func(file File) bool { return known[path.Base(file.Name)] })
	return err
}

// Close gives the files up. Nobody reads them then.
func (f *Files) Close() {
	f.segments.Close()
	f.view.Close()
}

// damaging reads a table.
type damaging struct{ io.Reader }

func (d damaging) Read(b []byte) (int, error) {
	n, err := d.Reader.Read(b)
	return n, damaged(err)
}

var fileNames = regexp.MustCompile(`^(format|anchor|db/(MANIFEST|([0-9]{6}|[1-9][0-9]{6,19})\.sst)|journal/([0-9]{16}|[1-9][0-9]{16,19})\.log)$`)

// IsFile says whether Files may have a file of the name.
func IsFile(name string) bool { return fileNames.MatchString(name) }
