package tables

import (
	"io"
	"runtime/debug"

	"github.com/cespare/xxhash/v2"
	"github.com/dgraph-io/badger/v4"
)

// ListName is the name of the list's file, beside the tables.
const ListName = badger.ManifestFilename

// Encode returns the list as its file has it, in a folder with the tables of the view.
func (v *View) Encode() ([]byte, error) { return v.List.encode() }

// Known returns the names of the tables that a list has, too, which Encode gave.
func (v *View) Known(list []byte) (map[string]bool, error) {
	had, err := decode(list)
	if err != nil {
		return nil, err
	}
	sums, known := make(map[string]uint64), make(map[string]bool)
	for _, t := range had.Tables {
		sums[t.Name()] = t.Sum
	}
	for _, t := range v.List.Tables {
		sum, ok := sums[t.Name()]
		known[t.Name()] = ok && sum == t.Sum // a folder that was replaced may use a name again
	}
	return known, nil
}

// Reader reads the file of the table with an index in the list, also when its name is gone. In
// place of io.EOF it gives an error that wraps ErrDamaged if the file is not what was written.
func (v *View) Reader(i int) io.Reader {
	return &reader{file: v.files[i], sum: xxhash.New()}
}

type reader struct {
	file *file
	at   int
	sum  *xxhash.Digest
}

func (r *reader) Read(b []byte) (n int, err error) {
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	r.file.wait()
	n = copy(b, r.file.data[r.at:])
	_, _ = r.sum.Write(b[:n])
	r.at += n
	if r.at < len(r.file.data) || n > 0 {
		return n, nil
	}
	r.file.rest()
	if r.sum.Sum64() != r.file.Sum {
		return 0, r.file.damage("it does not have the sum that was written")
	}
	return 0, io.EOF
}
