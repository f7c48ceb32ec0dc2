package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
)

func openView(t testing.TB, dir string, o ViewOptions) *View {
	t.Helper()
	v, err := OpenView(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

// viewed returns the packets of a view and holds its scans against each other.
func viewed(t testing.TB, v *View) (ids []PacketID) {
	t.Helper()
	var records []PacketID
	err := errors.Join(
		v.Packets(QueueRange{}, func(id PacketID, _ *Meta) error { ids = append(ids, id); return nil }),
		v.Records(QueueRange{}, func(id PacketID, _ []byte, _ error) error { records = append(records, id); return nil }),
	)
	if err != nil || !slices.Equal(ids, records) || !slices.IsSortedFunc(ids, PacketID.Compare) {
		t.Fatalf("%d packets, %d records, %v", len(ids), len(records), err)
	}
	return ids
}

// state is every file of a folder: its contents, when it was written, and how.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		sum := uint64(0)
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum = xxhash.Sum64(b)
		}
		files[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano(), sum)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// busyFolder is the copy of a folder that is being written to: with a table,
// a log that a killed process left, large payloads, and expiry.
func busyFolder(t *testing.T) (dir string, control Control, ids []PacketID) {
	t.Helper()
	live := t.TempDir()
	open := func() *Store { return openTest(t, live, Options{MemTable: 4 << 20}) }
	s := open()
	var b Batch
	for i := range uint64(60) {
		b.Reset()
		b.PutQueue(Queue{ID: 1 + uint32(i%3), Name: fmt.Append(nil, "queue ", i%3)})
		for j := range uint64(40) {
			p := Packet{Key: fmt.Append(nil, i), Payload: bytes.Repeat([]byte{byte(j)}, 300)}
			if j == 7 {
				p.Payload = bytes.Repeat([]byte{byte(i)}, 4000)
			}
			if j == 9 {
				p.Expiry = time.Now().Add(time.Hour).UnixMilli()
			}
			id := PacketID{1 + uint32(i%3), uint32(j % 4), i*40 + j}
			b.Put(id, &p)
			if j > 0 || i == 0 {
				ids = append(ids, id)
			}
		}
		if i > 0 { // the first of the batch before
			b.Delete(PacketID{1 + uint32((i-1)%3), 0, (i - 1) * 40}, Removed{})
		}
		if i == 59 {
			ids = append(ids, PacketID{1 + uint32(i%3), 0, i * 40})
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		if i == 35 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open()
		}
	}
	ids = slices.DeleteFunc(ids, func(id PacketID) bool { return id.Seq == 0 })
	slices.SortFunc(ids, PacketID.Compare)
	dir = t.TempDir()
	copyFolder(t, live, dir)
	return dir, s.Control(), ids
}

func TestViewShowsWhatAStartWouldAndChangesNothing(t *testing.T) {
	dir, control, ids := busyFolder(t)
	clean := t.TempDir()
	copyFolder(t, dir, clean)
	if err := smallStore(t, clean).Close(); err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]string{"killed": dir, "stopped": clean} {
		for _, o := range []ViewOptions{{}, {Deep: true}, {Tolerant: true}, {Deep: true, Tolerant: true}} {
			t.Run(fmt.Sprint(name, o.Deep, o.Tolerant), func(t *testing.T) {
				before := state(t, folder)
				v := openView(t, folder, o)
				if c := v.Control(); c != control {
					t.Errorf("control record %+v, want %+v", c, control)
				}
				if got := viewed(t, v); !slices.Equal(got, ids) {
					t.Errorf("%d packets, want %d", len(got), len(ids))
				}
				queues := 0
				if err := v.Queues(func(q Queue) error { queues++; return nil }); err != nil || queues != 3 {
					t.Errorf("%d queues, %v", queues, err)
				}
				large := 0
				if err := v.Payloads(func(_ uint32, _ uint64, size int64) error {
					if large++; size != 4000 {
						t.Errorf("a payload of %d bytes", size)
					}
					return nil
				}); err != nil || large != 60 {
					t.Errorf("%d large payloads, %v", large, err)
				}
				if found := v.Findings(); len(found) != 0 {
					t.Errorf("findings: %v", found)
				}
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
				if after := state(t, folder); !equalMaps(before, after) {
					t.Errorf("the folder changed: before\n%v\nafter\n%v", before, after)
				}
			})
		}
	}
}

func equalMaps(a, b map[string]string) bool {
	for name, state := range a {
		if b[name] != state {
			return false
		}
	}
	return len(a) == len(b)
}
