package storage

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/inject"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

const manifestName = "MANIFEST"

func openTest(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// damageOf returns why a packet cannot be read, nil if it can.
func damageOf(s *Store, id content.PacketID) (why error) {
	s.Read([]content.PacketID{id}, func(_ int, _ []byte, damage error) { why = damage })
	return why
}

// smallStore has small segments, so that copies of it are small.
func smallStore(t testing.TB, dir string) *Store {
	t.Helper()
	return openTest(t, dir, Options{Window: minWindow})
}

// one returns a batch of one packet.
func one(seq uint64, p content.Packet) *content.Batch {
	var b content.Batch
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: seq}, &p)
	return &b
}

func applied(t testing.TB, s *Store, b *content.Batch) {
	t.Helper()
	if err := s.Apply(b); err != nil {
		t.Fatal(err)
	}
	b.Reset()
}

// settled brings all that was applied into tables, where the scans of a start see it.
func settled(t testing.TB, s *Store) *Store {
	t.Helper()
	if err := s.settle(); err != nil {
		t.Fatal(err)
	}
	return s
}

// scanned returns the packets of a store, and the totals of all that is in it.
func scanned(t testing.TB, s *Store) (ids []content.PacketID, tally content.Tally) {
	t.Helper()
	err := errors.Join(
		s.Packets(func(id content.PacketID, m *content.Meta) error {
			ids = append(ids, id)
			tally.Add(id, m.Expiry)
			return nil
		}),
		eachItem(s, func(v content.ValueID, i content.Item) error {
			tally.AddItem(v, i.Version)
			return nil
		}),
		s.Uniques(func(u *content.Unique) error {
			tally.AddUnique(u.UniqueID)
			return nil
		}),
		s.Deliveries(func(d *content.Delivery, _ content.Stored) error {
			tally.AddDelivery(d.Identity)
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	return ids, tally
}

// What follows shows one kind each. A store holds nothing against the control record, nor does a
// tolerant view.

func (s *Store) Queues(fn func(content.Queue) error) error {
	return s.Walk(Visitor{Queue: fn, Uncounted: true})
}

func (s *Store) Uniques(fn func(*content.Unique) error) error {
	return s.Walk(Visitor{Unique: fn, Uncounted: true})
}

func (s *Store) Packets(fn func(content.PacketID, *content.Meta) error) error {
	return s.Walk(Visitor{Packet: readable(fn), Uncounted: true})
}

func (s *Store) Items(fn func(v content.ValueID, h *content.Head, f *content.Field, damage error) error) error {
	return s.Walk(Visitor{Item: fn, Uncounted: true})
}

func (s *Store) Deliveries(fn func(d *content.Delivery, stored content.Stored) error) error {
	return s.Walk(Visitor{Uncounted: true, State: func(d *content.Delivery, stored content.Stored, damage error) error {
		if damage != nil && stored&content.StoredDelivery != 0 {
			return damage
		}
		return fn(d, stored)
	}})
}

func (n *Snapshot) Queues(fn func(content.Queue) error) error { return n.Walk(Visitor{Queue: fn}) }

func (n *Snapshot) Packets(fn func(content.PacketID, *content.Meta) error) error {
	return n.Walk(Visitor{Packet: readable(fn), Wrong: n.unlessTolerant})
}

func (n *Snapshot) Records(r QueueRange, fn func(id content.PacketID, rec []byte, damage error) error) error {
	return n.Walk(Visitor{Range: r, Whole: true, Wrong: n.unlessTolerant, Packet: func(id content.PacketID, _ *content.Meta, rec []byte, damage error) error {
		return fn(id, rec, damage)
	}})
}

func (n *Snapshot) Items(fn func(v content.ValueID, h *content.Head, f *content.Field, damage error) error) error {
	return n.Walk(Visitor{Item: fn, Whole: true, Wrong: n.unlessTolerant})
}

func (n *Snapshot) Deliveries(fn func(d *content.Delivery, damage error) error) error {
	return n.Walk(Visitor{Whole: true, Wrong: n.unlessTolerant, State: func(d *content.Delivery, _ content.Stored, damage error) error {
		return fn(d, damage)
	}})
}

// readable is for packets whose records can be read.
func readable(fn func(content.PacketID, *content.Meta) error) func(content.PacketID, *content.Meta, []byte, error) error {
	return func(id content.PacketID, m *content.Meta, _ []byte, damage error) error {
		if damage != nil {
			return damage
		}
		return fn(id, m)
	}
}

func (n *Snapshot) unlessTolerant(err error) error {
	if errors.Is(err, ErrLoss) && n.tolerate != nil {
		return nil
	}
	return err
}

// eachItem calls fn with every head and field of a store; large values are nil.
func eachItem(s *Store, fn func(v content.ValueID, i content.Item) error) error {
	return s.Items(func(v content.ValueID, h *content.Head, f *content.Field, damage error) error {
		switch {
		case damage != nil:
			return damage
		case h != nil:
			return fn(v, content.Item{Kind: h.Kind, Database: h.Database, Name: h.Name, Version: h.Version, Expiry: h.Expiry, Value: h.Value, Size: uint64(h.Size)})
		}
		return fn(v, content.Item{Name: f.Name, Version: f.Version, Value: f.Value, Size: uint64(f.Size)})
	})
}

// entries are those of a batch, one by one.
type entries struct {
	body  [][]byte
	hides []uint32
}

func (e *entries) put(key, value []byte, expires uint64, over bool) {
	kind := content.EntryNew
	if over {
		kind = content.EntryOver
	}
	e.add(append(content.AppendEntryHead(nil, kind, key, expires, len(value)), value...))
}

func (e *entries) delete(key []byte) {
	e.add(content.AppendEntryHead(nil, content.EntryDelete, key, 0, 0))
}

func (e *entries) add(raw []byte) { e.body, e.hides = append(e.body, raw), append(e.hides, 0) }

// checkTotals recounts what a batch keeps up to date. Its entries alone say what it changes of the
// packets that are counted.
func checkTotals(t rapid.TB, b *content.Batch) {
	t.Helper()
	size, before, after := 0, content.Tally{}, content.Tally{}
	pieces, _ := b.Body(nil, nil)
	for _, piece := range pieces {
		size += len(piece)
	}
	err := content.EachEntry(pieces, uint32(b.Len()), func(e content.Entry) {
		id, err := content.DecodePacketKey(e.Key)
		if err != nil {
			return
		}
		if e.Kind == content.EntryOver || e.Kind == content.EntryDelete {
			before.Add(id, 0)
		}
		if !e.Kind.Deletes() && e.Expires == 0 {
			after.Add(id, 0)
		}
	})
	if err != nil || size != b.Bytes() {
		t.Fatalf("the batch says %d entries and %d bytes: it has %d bytes; %v", b.Len(), b.Bytes(), size, err)
	}
	if tally := b.Tally(); tally.Live != after.Live-before.Live || tally.Hash != after.Hash-before.Hash {
		t.Fatalf("the entries change the packets from %+v to %+v, and the batch says by %+v", before, after, tally)
	}
}

// each calls fn for every key with a prefix.
func each(s *Store, prefix string, fn func()) error {
	n, err := s.snapshot()
	if err != nil {
		return err
	}
	defer n.Close()
	return n.scan(all(prefix), nil, func(_, _ []byte) error { fn(); return nil })
}

// behind writes entries that no batch would write, and that the control record does not count.
func behind(t testing.TB, s *Store, change func(e *entries)) {
	t.Helper()
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	var e entries
	change(&e)
	next := s.Control()
	next.Batch++
	if err := s.commit(&next, len(e.body), e.body, e.hides); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.control = next
	s.mu.Unlock()
}

// inTables brings what is pending into tables.
func inTables(t testing.TB, s *Store) {
	t.Helper()
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
}

// forget sets the anchor to a batch.
func forget(t testing.TB, dir string, batch uint64) {
	t.Helper()
	var b [anchorSize]byte
	encodeAnchor(b[:anchorSlot], anchorMark{epoch: 1, batch: batch, always: true})
	if err := os.WriteFile(filepath.Join(dir, anchorName), b[:], 0o600); err != nil {
		t.Fatal(err)
	}
}

// killed copies the folder of an open store as a kill at one moment would leave it: what was
// written is in the page cache, synced or not.
func killed(t testing.TB, s *Store) (dir string) {
	t.Helper()
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.flushing.Lock()
	defer s.flushing.Unlock()
	return copiedAtOnce(t, s)
}

// copiedAtOnce is killed where nothing is applied nor written out.
func copiedAtOnce(t testing.TB, s *Store) (dir string) {
	t.Helper()
	const list = dbName + "/" + manifestName
	for {
		dir = t.TempDir()
		before, err := os.ReadFile(s.folder.name(list))
		if err != nil {
			t.Fatal(err)
		}
		err = copied(s.folder.path, dir)
		if after, _ := os.ReadFile(filepath.Join(dir, list)); err == nil && bytes.Equal(before, after) {
			return dir // no merge came in between
		}
	}
}

// copyFolder copies a folder that nobody changes.
func copyFolder(t testing.TB, from, to string) {
	t.Helper()
	if err := copied(from, to); err != nil {
		t.Fatal(err)
	}
}

func copied(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		switch {
		case entry.IsDir():
			return os.MkdirAll(at, 0o700)
		case entry.Type()&fs.ModeSymlink != 0: // of a view that a kill left: it may lead nowhere
			target, err := os.Readlink(path)
			return errors.Join(err, os.Symlink(target, at))
		}
		return copyFile(path, at)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// edit changes what a file holds; a change to nil removes it.
func edit(t testing.TB, path string, change func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		if b = change(b); b == nil {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, b, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// overwrite puts bytes into a file.
func overwrite(name string, at int, b []byte) error {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(b, int64(at))
	return errors.Join(err, file.Close())
}

// tableFiles returns the tables of a folder, and logFiles the segments that have begun.
func tableFiles(t testing.TB, dir string) []string {
	t.Helper()
	list, err := tables.ReadList(filepath.Join(dir, dbName))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, dbName, "*.sst"))
	if err != nil || len(paths) != len(list.Tables) {
		t.Fatalf("%d files of %d tables, %v", len(paths), len(list.Tables), err)
	}
	return paths
}

func logFiles(t testing.TB, dir string) (begun []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, journalName, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(b, []byte("HFSEG")) {
			begun = append(begun, path)
		}
	}
	return begun
}

// step is one number where every place is tried, and another one where a few are enough.
func step(all, few int) int {
	if inject.Every() {
		return all
	}
	return few
}

// abandoned leaves the folder of a store as a kill would, and gives up what the process has of it.
func abandoned(s *Store) {
	s.mu.Lock()
	s.failed = ErrClosed
	s.mu.Unlock()
	s.stop()
	s.done.Wait()
	s.release()
}

// some says which cases of a test are tried, from 1 on: one in so many, others in each run. A sweep
// tries all.
func some(t *testing.T, oneIn int) (first, stride int) {
	t.Helper()
	if inject.Runs() >= 100 {
		return 1, 1
	}
	return inject.Sample(t, oneIn)
}

// files are the names and contents of all that is in a folder, but for its lock.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) == lockName {
			return err
		}
		if all[path] = e.Type().String(); e.Type().IsRegular() {
			b, err := os.ReadFile(path)
			all[path] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// same compares packets; no tags and no payload have two forms.
func same(a, b content.Packet) bool {
	return bytes.Equal(a.Key, b.Key) && (a.Key == nil) == (b.Key == nil) && bytes.Equal(a.Payload, b.Payload) &&
		a.Expiry == b.Expiry && a.NotBefore == b.NotBefore && a.EnqueuedAt == b.EnqueuedAt &&
		slices.Equal(a.Tags, b.Tags) && a.Attempts == b.Attempts && a.Producer == b.Producer &&
		a.Identity == b.Identity && bytes.Equal(a.Unique, b.Unique)
}

func sameItem(a, b content.Item) bool {
	return a.Kind == b.Kind && a.Database == b.Database && bytes.Equal(a.Name, b.Name) && a.Version == b.Version &&
		a.Expiry == b.Expiry && bytes.Equal(a.Value, b.Value)
}

// appendHead appends the record of a packet whose payload is kept apart.
func appendHead(dst []byte, p *content.Packet) []byte {
	return append(dst, content.CutPayload(content.AppendRecord(nil, p))...)
}
