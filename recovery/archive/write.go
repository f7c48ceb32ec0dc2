package archive

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// pieceBytes is how much is read and written at a time.
const pieceBytes = 256 << 10

// Write writes an archive of files as they were at a moment. program is the version of this one.
func Write(w io.Writer, f *storage.Files, program string, at time.Time) error {
	h := Header{
		Archive: archiveVersion, Folder: content.FormatVersion, Program: program, At: at.UnixMilli(),
		Batch: f.Control().Batch, Packets: f.Control().Live,
	}
	for _, file := range f.List {
		h.Files = append(h.Files, File{file.Name, file.Size})
	}
	b, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return err
	}
	a := writer{tar: tar.NewWriter(w), at: at.Truncate(time.Second), piece: make([]byte, pieceBytes)}
	a.sum.Reset()
	if err := a.bytes(HeaderName, append(b, '\n')); err != nil {
		return err
	}
	for _, file := range f.List {
		if err := a.file(file.Name, file.Size, file.Content); err != nil {
			return fmt.Errorf("file %s: %w", file.Name, err)
		}
	}
	if err := a.bytes(sumName, fmt.Appendf(nil, "%016x\n", a.sum.Sum64())); err != nil {
		return err
	}
	return a.tar.Close()
}

type writer struct {
	tar   *tar.Writer
	at    time.Time
	sum   xxhash.Digest // of the content of all files so far
	piece []byte
}

// bytes writes a file that is at hand.
func (a *writer) bytes(name string, b []byte) error {
	return a.file(name, int64(len(b)), bytes.NewReader(b))
}

func (a *writer) file(name string, size int64, content io.Reader) error {
	err := a.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: a.at, Format: tar.FormatUSTAR})
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{a.tar}, io.TeeReader(content, &a.sum), a.piece)
	return err
}
