package simulated

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Cut says what a power cut leaves of what was not synced.
type Cut int

// The cuts. They are harder than what most file systems do: a name is on the device once its folder
// was synced, and bytes once their file was.
const (
	Nothing Cut = iota
	Prefix      // the first calls; the next write is torn
	Any         // any sectors and names
	Cuts
)

const sector = 512

// Leave makes a folder of what a cut at this moment may leave.
func (d *Disk) Leave(to string, cut Cut, r *rand.Rand) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := map[*node]map[string]*node{}
	of := func(dir *node) map[string]*node {
		if names[dir] == nil {
			names[dir] = maps.Clone(dir.durable)
		}
		return names[dir]
	}
	upto := r.IntN(len(d.pending) + 1)
	for i, p := range d.pending {
		if cut == Prefix && i < upto || cut == Any && r.IntN(2) == 0 {
			for _, s := range p.set {
				s.apply(of(s.dir))
			}
		}
	}
	return lay(to, d.root, of, cut, r)
}

// lay makes a folder as a cut leaves it.
func lay(to string, dir *node, of func(dir *node) map[string]*node, cut Cut, r *rand.Rand) error {
	if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	all := of(dir)
	for _, as := range slices.Sorted(maps.Keys(all)) {
		n, path, err := all[as], filepath.Join(to, as), error(nil)
		switch {
		case n.dir:
			err = lay(path, n, of, cut, r)
		case n.link:
			err = os.WriteFile(path, nil, 0o600) // nobody follows it behind a cut
		default:
			err = os.WriteFile(path, n.left(cut, r), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// left is what a cut leaves of a file.
func (n *node) left(cut Cut, r *rand.Rand) []byte {
	if len(n.waiting) == 0 || cut == Nothing {
		return n.device
	}
	b := slices.Clone(n.device)
	upto, torn := r.IntN(len(n.waiting)+1), r.IntN(3)
	for i, w := range n.waiting {
		switch {
		case cut == Prefix && i < upto, cut == Any && w.data == nil && r.IntN(2) == 0:
			b = w.on(b)
		case cut == Prefix && i == upto && w.data != nil:
			w.data = w.data[:r.IntN(len(w.data)+1)/sector*sector]
			b = w.on(b)
		case cut == Any:
			for at := 0; at < len(w.data); at += sector {
				if torn == 0 && r.IntN(2) == 0 || torn == 1 && r.IntN(16) > 0 || torn == 2 && r.IntN(16) == 0 {
					b = write{at: w.at + int64(at), data: w.data[at:min(at+sector, len(w.data))]}.on(b)
				}
			}
		}
	}
	return b
}
