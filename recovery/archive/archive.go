// Package archive makes a tar of the files of a running store, and a data folder of such a tar:
// the quickest backup, of everything and for the same machine or a newer program. ARCHIVE.md says
// what it holds.
//
// archive.go is its header, write.go writes one, read.go reads and checks it, restore.go makes a
// folder of it.
package archive

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Header is the first file of an archive.
type Header struct {
	Archive int    `json:"archive"` // version of the archive, archiveVersion
	Folder  int    `json:"folder"`  // version of the data folder
	Program string `json:"program"` // version of the program that wrote it
	At      int64  `json:"at"`      // the moment, in Unix milliseconds
	Batch   uint64 `json:"batch"`   // the last one that it holds
	Packets uint64 `json:"packets"` // those without an expiry
	Files   []File `json:"files"`   // the others, in their order
}

// File is one of the data folder.
type File struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

const (
	archiveVersion = 1

	// HeaderName is the name of the first file, with which an archive begins.
	HeaderName = "holdfast-backup.json"
	sumName    = "holdfast-backup.sum" // the last file: the sum of all others, one after the other
	sumSize    = 17                    // 16 hexadecimal digits and a line feed

	// maxHeader bounds the header: a folder of a terabyte has some 20,000 tables.
	maxHeader = 4 << 20
)

// Bytes is how many bytes the files have.
func (h *Header) Bytes() (n int64) {
	for _, f := range h.Files {
		n += f.Size
	}
	return n
}

// decode reads a header. What it lists may be made in a folder, and nowhere else.
func (h *Header) decode(b []byte) error {
	if err := json.Unmarshal(b, h); err != nil {
		return fmt.Errorf("%s cannot be read: %w", HeaderName, err)
	}
	if h.Archive > archiveVersion || h.Folder != content.FormatVersion {
		return fmt.Errorf("%w: version %s of the program wrote it (archive %d, data format %d), and this one reads archive %d, data format %d: restore it with that version, and load a dump of the folder that it makes",
			storage.ErrFormat, h.Program, h.Archive, h.Folder, archiveVersion, content.FormatVersion)
	}
	const most = 1 << 60 // so that no sum of sizes overflows
	seen, total := make(map[string]bool, len(h.Files)), int64(0)
	for _, f := range h.Files {
		if !storage.IsFile(f.Name) || seen[f.Name] || f.Size < 0 || f.Size > most-total {
			return fmt.Errorf("%s lists %.100q of %d bytes, which is no file of a data folder or is there twice", HeaderName, f.Name, f.Size)
		}
		seen[f.Name] = true
		total += f.Size
	}
	return nil
}
