package dump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/holdfast-queue/holdfast/storage"
)

// loadedState is what was loaded last. It is the loaded record of the store (DUMP.md, section loaded
// record): written by the last batch of a load, and gone with the first batch of anything else. So a
// load that ended and could not say so, because its process did, is known when it is begun again.
type loadedState struct {
	Version int  `msgpack:"version"`
	Merge   bool `msgpack:"merge"`

	Size int64  `msgpack:"size"` // of the dump, bytes
	Hash uint64 `msgpack:"hash"` // xxhash64 of all of it
	Head uint64 `msgpack:"head"` // xxhash64 of its first headBytes, or of all if it is shorter

	Packets int64 `msgpack:"packets"`
	Queues  int64 `msgpack:"queues"`
	Expired int64 `msgpack:"expired"`
}

const loadedVersion = 1

// errLoadedRecord means that nobody can tell whether the dump was loaded already.
var errLoadedRecord = errors.New("if this dump was not loaded into the folder yet, ask to load it again")

func (s *loadedState) encode() ([]byte, error) {
	rec, err := msgpack.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the loaded record: %w", err)
	}
	return rec, nil
}

// decodeLoadedState returns nil for a record of another version, which nothing can be compared with.
func decodeLoadedState(rec []byte) (*loadedState, error) {
	var s loadedState
	if len(rec) > maxLoadRecord {
		return nil, fmt.Errorf("%w: the loaded record has %d bytes, at most %d were expected; %w", storage.ErrDamaged, len(rec), maxLoadRecord, errLoadedRecord)
	}
	if err := msgpack.Unmarshal(rec, &s); err != nil {
		return nil, fmt.Errorf("%w: the loaded record cannot be read: %w; %w", storage.ErrDamaged, err, errLoadedRecord)
	}
	if s.Version != loadedVersion {
		return nil, nil
	}
	return &s, nil
}

// headOf reads the beginning of a dump, and returns its hash and a reader of the whole dump.
func headOf(r io.Reader) (hash uint64, whole io.Reader, err error) {
	head := make([]byte, headBytes)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, nil, fmt.Errorf("%w: %w", errRead, err)
	}
	return xxhash.Sum64(head[:n]), io.MultiReader(bytes.NewReader(head[:n]), r), nil
}

// loaded reports whether the dump is the one that was loaded last, and loaded in the same way. Only
// a dump that begins like that one is read, to its end.
func (l *loader) loaded(ctx context.Context) (bool, error) {
	rec := l.store.Loaded()
	if rec == nil || l.Again {
		return false, nil
	}
	last, err := decodeLoadedState(rec)
	if err != nil || last == nil || last.Merge != l.Merge || last.Head != l.head {
		return false, err
	}
	d := &dumpReading{ReadOptions: ReadOptions{Progress: l.Progress}, in: l.in, check: l.check}
	if err := d.runAll(ctx); err != nil {
		return false, err
	}
	if d.bytes != last.Size || d.hash != last.Hash {
		return false, l.rewind()
	}
	if _, err := l.scan(ctx); err != nil { // what is lost since is not there
		return false, err
	}
	l.report.Already = true
	l.report.Packets, l.report.Queues, l.report.Expired, l.report.Bytes = last.Packets, last.Queues, last.Expired, last.Size
	return true, nil
}

// rewind goes back to the start of the dump.
func (l *loader) rewind() error {
	if l.seeker == nil {
		return ErrAlike
	}
	if _, err := l.seeker.Seek(l.begin, io.SeekStart); err != nil {
		return fmt.Errorf("cannot go back to the start of the dump: %w", err)
	}
	return l.begun(l.r)
}

// begun reads the header of the dump that r begins with.
func (l *loader) begun(r io.Reader) (err error) {
	if l.in, err = openInput(r); err != nil {
		return err
	}
	if l.check, err = newChecker(&l.in.first); err != nil {
		return fmt.Errorf("%s: %w", l.in.place(1), err)
	}
	if l.check.header.payload == None {
		return errors.New("the dump was made without payloads: its packets cannot be stored; dump them again with their payloads")
	}
	return nil
}

// rehearse reads the whole dump before anything of it is merged, and goes back to its start.
func (l *loader) rehearse(ctx context.Context) error {
	fresh, bytes := 0, 0
	d := &dumpReading{in: l.in, check: l.check}
	d.Queue = func(q *storage.Queue) error {
		if l.names.has(q.Name) {
			return nil
		}
		fresh++
		bytes += len(q.Name)
		return l.names.room(fresh, bytes)
	}
	if err := d.runAll(ctx); err != nil {
		return err
	}
	return l.rewind()
}
