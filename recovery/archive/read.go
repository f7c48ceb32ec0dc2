package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// Reader reads an archive. It belongs to one goroutine.
type Reader struct {
	Header Header

	in   io.Reader
	tar  *tar.Reader
	sum  xxhash.Digest // of the content of all files so far
	done int64         // bytes of the files of the header
}

// ErrNot: what was read is no archive. errors.Is finds it.
var ErrNot = errors.New("not a backup of files; unpack one that is compressed first, for example through a pipe")

// NewReader reads the beginning of an archive.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: in, tar: tar.NewReader(in)}
	r.sum.Reset()
	t, err := r.tar.Next()
	if errors.Is(err, tar.ErrHeader) || err == nil && t.Name != HeaderName || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, ErrNot
	}
	if err == nil {
		err = plain(t, HeaderName, min(t.Size, maxHeader))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the backup: %w", err)
	}
	b, err := io.ReadAll(io.TeeReader(r.tar, &r.sum))
	if err == nil {
		err = r.Header.decode(b)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the backup: %w", r.cut(err))
	}
	return r, nil
}

// plain refuses what is not the regular file that must come next.
func plain(t *tar.Header, name string, size int64) error {
	if t.Format != tar.FormatUSTAR || t.Typeflag != tar.TypeReg || t.Name != name || t.Size != size {
		return fmt.Errorf("the tar has %.100q of %d bytes (type %q) where %s of %d is due: it was altered", t.Name, t.Size, t.Typeflag, name, size)
	}
	return nil
}

// Each calls fn with each file of the header, and checks the archive to its end. fn may be nil; an
// error of it ends the reading. progress is told the bytes of files that were read, and of all; it
// may be nil. Until Each returns nil nothing of the archive may be believed.
func (r *Reader) Each(ctx context.Context, fn func(name string, content io.Reader) error, progress func(done, total int64)) error {
	if progress == nil {
		progress = func(int64, int64) {}
	}
	if fn == nil {
		piece := make([]byte, pieceBytes)
		fn = func(_ string, content io.Reader) error {
			_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, content, piece)
			return err
		}
	}
	total := r.Header.Bytes()
	told := func(p []byte) error {
		r.done += int64(len(p))
		progress(r.done, total)
		return ctx.Err()
	}
	for _, f := range r.Header.Files {
		content := io.TeeReader(r.tar, io.MultiWriter(&r.sum, tell(told)))
		err := r.next(f.Name, f.Size)
		if err == nil {
			err = fn(f.Name, content)
		}
		if err != nil {
			return r.cut(err)
		}
	}
	return r.cut(r.end())
}

// tell is told of what is read.
type tell func(p []byte) error

func (t tell) Write(p []byte) (int, error) { return len(p), t(p) }

// next goes to the file that must come next.
func (r *Reader) next(name string, size int64) error {
	t, err := r.tar.Next()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	return plain(t, name, size)
}

// end checks the sum, and that nothing follows it.
func (r *Reader) end() error {
	if err := r.next(sumName, sumSize); err != nil {
		return err
	}
	b, err := io.ReadAll(r.tar)
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("%016x\n", r.sum.Sum64()); string(b) != want {
		return fmt.Errorf("the sum of its files is %.16s, and it says %q: it was altered", want, b)
	}
	if t, err := r.tar.Next(); err == nil {
		return fmt.Errorf("%.100q follows its end: it was altered", t.Name)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	if n, err := io.ReadFull(r.in, make([]byte, 1)); n > 0 {
		return errors.New("something follows its end: it was altered")
	} else if !errors.Is(err, io.EOF) { // of a transfer that was cut
		return err
	}
	return nil
}

// cut says what an end before its time means.
func (r *Reader) cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the backup is cut short: it ends behind %d of %d bytes of its files", r.done, r.Header.Bytes())
	}
	return err
}
