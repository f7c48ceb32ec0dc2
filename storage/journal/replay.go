package journal

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"golang.org/x/sys/unix"
)

// ErrDamage: something that was on the device is not there any more. errors.Is finds it.
var ErrDamage = errors.New("the journal is damaged")

// Record is one that Replay found. What it points to is valid until fn returns.
type Record struct {
	Content
	Place Place
	// AfterHole says that records before it are missing, which was accepted.
	AfterHole bool

	head int // how long its head is
}

// Overhead returns how many bytes of the record stand before its entries.
func (r *Record) Overhead() int { return r.head + len(r.Control) }

// ReplayOptions say from where a journal is read, and what is passed over.
type ReplayOptions struct {
	// After is where the last record ends that is in tables; zero if none is.
	After Mark
	// AcceptBelow passes over damage that begins before the end of a batch, and goes on with the
	// records behind it: 0 passes over none, math.MaxUint64 over all.
	AcceptBelow uint64
	// Note is called with a sentence for damage that is passed over, and for records that a power
	// cut cost in a weak mode.
	Note func(string)
	// EndUnsynced ends the journal before records that were not synced, also where damage is passed
	// over, and notes nothing: an unclean end leaves such a journal.
	EndUnsynced bool
}

// Replay calls fn with each record of the journal, in order, and returns where the last one ends.
// The journal ends at the first record that does not join the chain, unless a later one shows that
// it was on the device: that is ErrDamage. Nothing in the folder changes.
func (j *Journal) Replay(o ReplayOptions, fn func(Record) error) (Mark, error) {
	j.acceptBelow = o.AcceptBelow
	r := reader{ReplayOptions: o, end: o.After}
	defer r.Close()
	err := r.read(j.begun, math.MaxUint64, fn)
	return r.end, err
}

// Window is segments that are mapped, in the order of their numbers.
type Window struct{ segments []mapped }

type mapped struct {
	header
	data []byte
}

// Window maps the records behind one mark up to another, and checks their chain once more. None of
// them may be released before the window is closed. Before Begin, it has the records of Replay.
func (j *Journal) Window(after, upto Mark) (*Window, error) {
	j.mu.RLock()
	begun := slices.Clone(j.begun)
	j.mu.RUnlock()
	o := ReplayOptions{After: after, AcceptBelow: j.acceptBelow, Note: func(string) {}}
	r := reader{ReplayOptions: o, end: after}
	err := r.read(begun, upto.Batch, func(Record) error { return nil })
	if err == nil && r.end != upto {
		err = fmt.Errorf("%w: what follows batch %d cannot be read again", ErrDamage, r.end.Batch)
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("segments %d to %d: %w", max(after.Segment, 1), upto.Segment, err)
	}
	return &r.Window, nil
}

// Bytes returns n bytes from a place on. They are valid until the window is closed. Reading them
// faults where the device fails.
func (w *Window) Bytes(p Place, n uint32) []byte {
	i := slices.IndexFunc(w.segments, func(m mapped) bool { return uint32(m.Number) == p.Segment })
	return w.segments[i].data[p.Offset:][:n]
}

// Close gives the mappings up.
func (w *Window) Close() {
	for _, m := range w.segments {
		_ = unix.Munmap(m.data)
	}
}

// reader follows the chain through segments.
type reader struct {
	ReplayOptions
	Window      // no segment is below the one where reading begins
	end    Mark // of the last record of the chain
	hole   bool // something was passed over
}

// read calls fn with the records up to a batch that are in some segments.
func (r *reader) read(segments []*segment, upto uint64, fn func(Record) error) (err error) {
	for _, s := range segments {
		if s.Number == damaged {
			err = r.pass(s.file.Name() + ": its header is damaged")
		} else if s.Number >= r.After.Segment {
			err = r.add(s)
		}
		if err != nil {
			return err
		}
	}
	defer CatchFault(debug.SetPanicOnFault(true), func() {
		err = fmt.Errorf("%w: what follows batch %d cannot be read", ErrDamage, r.end.Batch)
	})
	for _, m := range r.segments {
		if goOn, err := r.walk(m, upto, fn); !goOn {
			return err
		}
	}
	return nil
}

// CatchFault calls fn where the device could not give a page of a mapped file, which is a fault.
// was must come from SetPanicOnFault.
func CatchFault(was bool, fn func()) {
	debug.SetPanicOnFault(was)
	p := recover()
	if _, fault := p.(interface{ Addr() uintptr }); fault {
		fn()
	} else if p != nil {
		panic(p)
	}
}

// add maps a segment.
func (r *reader) add(s *segment) error {
	data, err := s.file.Map(s.size)
	if err == nil {
		r.segments = append(r.segments, mapped{s.header, data})
	}
	return err
}

// walk reads the records of a segment. goOn is false where the journal ends in it.
func (r *reader) walk(m mapped, upto uint64, fn func(Record) error) (goOn bool, err error) {
	at := page
	if m.Number == r.After.Segment {
		at = int(r.After.End)
	}
	for at < len(m.data) && r.end.Batch < upto {
		h, b, ok := readRecord(m.data[at:], &m.header)
		// Behind a torn record a later one may still show that it was on the device.
		if !ok || h.Batch <= r.end.Batch {
			at += page
			continue
		}
		if h.Batch != r.end.Batch+1 || h.Previous != r.end.Sum {
			what := fmt.Sprintf("records are missing between batch %d and batch %d", r.end.Batch, h.Batch)
			unsynced := h.Flags&flagOrdered == 0
			if unsynced && r.EndUnsynced {
				return false, nil
			}
			if unsynced && !r.accepts() {
				r.Note("the journal: " + what + ": they were not synced, and it ends before them")
				return false, nil
			}
			if err := r.pass(what); err != nil {
				return false, err
			}
		}
		place := Place{uint32(m.Number), uint32(at)}
		at += padded(len(b))
		r.end = Mark{h.Batch, m.Number, int64(at), h.Sum}
		content := b[m.heads():]
		control, body := content[:h.Control], content[h.Control:]
		c := Content{Batch: h.Batch, Control: control, Entries: h.Entries, Body: [][]byte{body}}
		if err := fn(Record{c, place, r.hole, m.heads()}); err != nil {
			return false, err
		}
	}
	return r.end.Batch < upto, nil
}

// accepts says whether damage here is passed over.
func (r *reader) accepts() bool { return r.end.Batch < r.AcceptBelow }

// pass passes over damage if that is accepted.
func (r *reader) pass(what string) error {
	if !r.accepts() {
		return fmt.Errorf("%w: %s", ErrDamage, what)
	}
	r.Note("the journal: " + what + "; this is passed over")
	r.hole = true
	return nil
}
