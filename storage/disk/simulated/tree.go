package simulated

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/storage/disk"
)

// node is a file or a folder.
type node struct {
	dir, link    bool
	now, durable map[string]*node // of a folder: its names, as the kernel and the device have them
	size         int64            // of a file
	device       []byte           // of a file: what is on the device
	waiting      []write          // and what is not, in order
	differs      bool             // what the kernel takes for the device's is not what that has
}

// write is one that the device may not have. Without data it is a new length.
type write struct {
	at   int64
	data []byte
	size int64
}

// naming is a change of names that the device may not have: of one, or of two by a rename.
type naming struct{ set []name }

type name struct {
	dir *node
	as  string
	to  *node // nil: gone
}

// load takes all that is below a folder for what is on the device.
func (d *Disk) load(path string) (*node, error) {
	n := &node{dir: true, now: map[string]*node{}, durable: map[string]*node{}}
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		child := &node{link: e.Type()&fs.ModeSymlink != 0}
		at := filepath.Join(path, e.Name())
		switch {
		case err != nil:
		case e.IsDir():
			child, err = d.load(at)
		case !child.link:
			child.device, err = os.ReadFile(at)
			child.size = int64(len(child.device))
			d.used += child.size
		}
		n.now[e.Name()], n.durable[e.Name()] = child, child
	}
	return n, err
}

// find returns what a path names, and the folder that it is in; nil where there is none.
func (d *Disk) find(path string) (n, dir *node) {
	rel, err := filepath.Rel(d.folder, path)
	if n = d.root; err != nil || rel == "." {
		return n, nil
	}
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		if n == nil || !n.dir {
			return nil, nil
		}
		n, dir = n.now[part], n
	}
	return n, dir
}

// opened opens a file, or makes one.
func (d *Disk) opened(c *disk.Call) (err error) {
	if c.File, err = os.OpenFile(c.Path, c.Flags, c.Perm); err != nil {
		return err
	}
	n, _ := d.find(c.Path)
	if n == nil {
		n = &node{}
		_ = d.made(c.Path, nil, n)
	} else if c.Flags&os.O_TRUNC != 0 {
		d.used -= n.size
		n.size = 0
		n.waiting = append(n.waiting, write{})
	}
	d.open[c.File] = n
	return nil
}

// made notes what was made at a path, unless that failed.
func (d *Disk) made(path string, err error, n *node) error {
	if _, dir := d.find(path); err == nil && dir != nil {
		if n.dir {
			n.now, n.durable = map[string]*node{}, map[string]*node{}
		}
		dir.now[filepath.Base(path)] = n
		d.pending = append(d.pending, &naming{[]name{{dir, filepath.Base(path), n}}})
	}
	return err
}

func (d *Disk) makeAll(path string, perm fs.FileMode) error {
	if n, _ := d.find(path); n == nil {
		if err := d.makeAll(filepath.Dir(path), perm); err != nil {
			return err
		}
		return d.made(path, os.Mkdir(path, perm), &node{dir: true})
	}
	return os.MkdirAll(path, perm) // which says what is wrong with it, if something is
}

func (d *Disk) renamed(c *disk.Call, err error) error {
	if err != nil {
		return err
	}
	n, was := d.find(c.Path)
	over, is := d.find(c.To)
	if over != nil {
		d.used -= over.size
	}
	from, to := filepath.Base(c.Path), filepath.Base(c.To)
	delete(was.now, from)
	is.now[to] = n
	d.pending = append(d.pending, &naming{[]name{{was, from, nil}, {is, to, n}}})
	return nil
}

func (d *Disk) removed(path string, err error) error {
	if n, dir := d.find(path); err == nil && n != nil {
		d.used -= n.size
		delete(dir.now, filepath.Base(path))
		d.pending = append(d.pending, &naming{[]name{{dir, filepath.Base(path), nil}}})
	}
	return err
}

// settle brings the names in a folder to the device.
func (d *Disk) settle(dir *node) {
	d.pending = slices.DeleteFunc(d.pending, func(p *naming) bool {
		in := slices.ContainsFunc(p.set, func(s name) bool { return s.dir == dir })
		for _, s := range p.set {
			if in {
				s.apply(s.dir.durable)
			}
		}
		return in
	})
}

func (s name) apply(names map[string]*node) {
	if s.to == nil {
		delete(names, s.as)
	} else {
		names[s.as] = s.to
	}
}

// on returns what a file has after a write.
func (w write) on(b []byte) []byte {
	end := w.size
	if w.data != nil {
		end = max(int64(len(b)), w.at+int64(len(w.data)))
	}
	if more := end - int64(len(b)); more > 0 {
		b = append(b, make([]byte, more)...)
	}
	b = b[:end]
	copy(b[min(w.at, end):], w.data)
	return b
}

// forget has a file read from the device. What is not there yet stays in memory.
func (n *node) forget(f *os.File) error {
	if !n.differs || len(n.waiting) > 0 {
		return nil
	}
	n.differs, n.size = false, int64(len(n.device))
	_, err := f.WriteAt(n.device, 0)
	if err == nil {
		err = f.Truncate(n.size)
	}
	return err
}

// evict is forget for all files below a folder.
func (n *node) evict(path string) error {
	for as, child := range n.now {
		at := filepath.Join(path, as)
		if child.dir {
			if err := child.evict(at); err != nil {
				return err
			}
		} else if child.differs && len(child.waiting) == 0 {
			f, err := os.OpenFile(at, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			if err := child.forget(f); err != nil {
				return err
			}
			_ = f.Close()
		}
	}
	return nil
}
