package journal

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"golang.org/x/sys/unix"
)

// ErrDamage: something that was on the device is not there any more. errors.Is finds it.
var ErrDamage = errors.New("the journal is damaged")

// Record is one that Replay found. What it points to is valid until fn returns.
type Record struct {
	Batch   uint64
	Place   Place
	Control []byte
	Entries uint32
	Body    []byte
	// AfterHole says that records before it are missing, which was accepted.
	AfterHole bool
}

// ReplayOptions say from where a journal is read, and what is passed over.
type ReplayOptions struct {
	// After is where the last record ends that is in tables; zero if none is.
	After Mark
	// AcceptLoss passes over damage, and goes on with the records behind it.
	AcceptLoss bool
	// Note is called with a sentence for damage that is passed over, and for records that a power
	// cut cost in a weak mode.
	Note func(string)
}

// Replay calls fn with each record of the journal, in order, and returns where the last one ends.
// The journal ends at the first record that does not join the chain, unless a later one shows that
// it was on the device: that is ErrDamage. Nothing in the folder changes.
func (j *Journal) Replay(o ReplayOptions, fn func(Record) error) (Mark, error) {
	paths, err := j.paths()
	if err != nil {
		return o.After, err
	}
	r, err := read(paths, o)
	if err != nil {
		return o.After, err
	}
	defer r.close()
	return r.run(fn)
}

// reader reads segments. Its end is that of the last record that joins the chain.
type reader struct {
	o        ReplayOptions
	segments []*mapped // in the order of their numbers, none below the one where reading begins
	end      Mark
	hole     bool // one was passed over
}

// mapped is a segment that is read.
type mapped struct {
	header header
	sum    uint64 // of the header
	data   []byte
}

// read maps the segments in some files, from where reading begins.
func read(paths []string, o ReplayOptions) (*reader, error) {
	r := &reader{o: o, end: o.After}
	for _, path := range paths {
		if err := r.open(path); err != nil {
			r.close()
			return nil, err
		}
	}
	slices.SortFunc(r.segments, func(a, b *mapped) int { return cmp.Compare(a.header.number, b.header.number) })
	return r, nil
}

// open maps a file, unless no segment has begun in it or reading begins behind it.
func (r *reader) open(path string) (err error) {
	data, err := mapFile(path)
	if err != nil {
		return err
	}
	defer func() {
		if data != nil {
			_ = unix.Munmap(data)
		}
	}()
	defer catchFault(&err, debug.SetPanicOnFault(true))
	h, sum, begun, err := readHeader(data)
	if err == nil && begun && uint64(len(data)) < h.size {
		err = fmt.Errorf("it has %d bytes of %d", len(data), h.size)
	}
	if err != nil {
		if what := fmt.Sprintf("%s: %v", path, err); !r.pass(what) {
			return fmt.Errorf("%w: %s", ErrDamage, what)
		}
		return nil
	}
	if begun && h.number >= r.o.After.Segment {
		r.segments = append(r.segments, &mapped{h, sum, data})
		data = nil
	}
	return nil
}

func (r *reader) close() {
	for _, m := range r.segments {
		_ = unix.Munmap(m.data)
	}
}

// pass says whether damage is passed over.
func (r *reader) pass(what string) bool {
	if r.o.AcceptLoss {
		r.o.Note("the journal: " + what + "; this is passed over")
		r.hole = true
	}
	return r.o.AcceptLoss
}

// run reads all records.
func (r *reader) run(fn func(Record) error) (end Mark, err error) {
	defer catchFault(&err, debug.SetPanicOnFault(true))
	for {
		f, place, ok := r.next()
		if !ok {
			if f, place, ok, err = r.skip(); !ok || err != nil {
				return r.end, err
			}
		}
		r.take(f, place)
		body := f.bytes[recordSize:]
		if err := fn(Record{f.batch, place, body[:f.control], f.entries, body[f.control:], r.hole}); err != nil {
			return r.end, err
		}
	}
}

// take makes a record the last one of the chain.
func (r *reader) take(f frame, p Place) {
	r.end = Mark{f.batch, uint64(p.Segment), int64(p.Offset) + int64(padded(len(f.bytes))), f.sum}
}

// next returns the record that joins the chain: the next one of its segment, or the first of the
// next segment.
func (r *reader) next() (frame, Place, bool) {
	for _, m := range r.segments {
		at, previous := r.end.End, r.end.Sum
		switch {
		case m.header.number == r.end.Segment+1 && m.header.previous == r.end.Sum:
			at, previous = page, m.sum
		case m.header.number != r.end.Segment || at > int64(len(m.data)):
			continue
		}
		if f, ok := readFrame(m.data[at:], &m.header.salt); ok && f.previous == previous && f.batch == r.end.Batch+1 {
			return f, Place{uint32(m.header.number), uint32(at)}, true
		}
	}
	return frame{}, Place{}, false
}

// skip looks for records behind the last one of the chain. ok is false where the journal ends. With
// a record it has passed over those that are missing.
func (r *reader) skip() (f frame, p Place, ok bool, err error) {
	for _, m := range r.segments {
		at := int64(page)
		if m.header.number == r.end.Segment {
			at = r.end.End
		}
		for ; at < int64(len(m.data)); at += page {
			if f, ok = readFrame(m.data[at:], &m.header.salt); !ok || f.batch <= r.end.Batch {
				continue
			}
			what := fmt.Sprintf("batch %d is missing, and a later one, %d, is there", r.end.Batch+1, f.batch)
			switch {
			case r.pass(what):
				return f, Place{uint32(m.header.number), uint32(at)}, true, nil
			case f.ordered:
				return f, p, false, fmt.Errorf("%w: %s", ErrDamage, what)
			}
			r.o.Note("the journal: " + what + ": they were not synced, and it ends before them")
			return f, p, false, nil
		}
	}
	return f, p, false, nil
}

// Window is the segments that hold some records, mapped.
type Window struct{ segments []*mapped }

// Window maps the records behind one mark up to another, and checks their chain once more, but for
// holes that Replay passed over. None of them may be released before the window is closed.
func (j *Journal) Window(after, upto Mark, holes bool) (_ *Window, err error) {
	var paths []string
	j.mu.RLock()
	for _, s := range j.begun {
		paths = append(paths, s.path)
	}
	j.mu.RUnlock()
	if paths == nil { // of an earlier run, which Replay read
		if paths, err = j.paths(); err != nil {
			return nil, err
		}
	}
	r, err := read(paths, ReplayOptions{After: after, AcceptLoss: holes, Note: func(string) {}})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	defer catchFault(&err, debug.SetPanicOnFault(true))
	for r.end.Batch < upto.Batch {
		f, place, ok := r.next()
		if !ok && holes {
			if f, place, ok, err = r.skip(); err != nil {
				return nil, err
			}
		}
		if !ok {
			return nil, fmt.Errorf("%w: batch %d cannot be read again", ErrDamage, r.end.Batch+1)
		}
		r.take(f, place)
	}
	return &Window{r.segments}, nil
}

// Bytes returns n bytes from so many bytes behind the beginning of a record on. They are valid
// until the window is closed. Reading them faults where the device fails.
func (w *Window) Bytes(p Place, behind, n uint32) []byte {
	i := slices.IndexFunc(w.segments, func(m *mapped) bool { return uint32(m.header.number) == p.Segment })
	at := int(p.Offset) + int(behind)
	return w.segments[i].data[at : at+int(n)]
}

// Close gives the mappings up.
func (w *Window) Close() { (&reader{segments: w.segments}).close() }

// mapFile maps a whole file to read it.
func mapFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open a file of the journal: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return nil, err
	}
	data, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("cannot map %s: %w", path, err)
	}
	return data, nil
}

// catchFault makes an error of a fault: the device cannot read a page. was is what SetPanicOnFault
// returned.
func catchFault(err *error, was bool) {
	p := recover()
	debug.SetPanicOnFault(was)
	if _, ok := p.(interface{ Addr() uintptr }); ok {
		*err = fmt.Errorf("%w: a part of it cannot be read", ErrDamage)
	} else if p != nil {
		panic(p)
	}
}
