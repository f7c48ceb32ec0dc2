package storage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// oldLogs makes a folder as a kill leaves it, with tables and two logs, and of
// packets with an expiry alone: neither the count of the control record nor
// the anchor knows one of those. Number of the batches: the last in a table,
// the last in the older log, and the last of all.
func oldLogs(t *testing.T) (dir, older string, batches uint64) {
	t.Helper()
	live := t.TempDir()
	var b Batch
	apply := func(s *Store, n uint64) {
		for range n {
			b.Reset()
			batches++
			b.Put(PacketID{1, 1, batches}, &Packet{Payload: []byte("x"), Expiry: 4_000_000_000_123})
			if err := s.Apply(&b); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := smallStore(t, live)
	apply(s, 5)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = smallStore(t, live)
	end := func() int { // of what its one log holds
		whole, err := os.ReadFile(s.wal.files[0].file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return readLog(whole, anyVersion).at
	}
	apply(s, 4)
	half := end()
	apply(s, 4)
	full := end()
	dir = t.TempDir()
	copyFolder(t, live, dir)

	name := filepath.Join(dir, dbName, filepath.Base(s.wal.files[0].file.Name()))
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	number, _ := logNumber(filepath.Base(name))
	second := append(bytes.Clone(whole[:logHeader]), whole[half:full]...)
	err = errors.Join(os.WriteFile(name, append(bytes.Clone(whole[:half]), make([]byte, 100)...), 0o600),
		os.WriteFile(filepath.Join(dir, dbName, logName(number+1)), append(second, make([]byte, 100)...), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return dir, name, batches
}

func TestDamageOfAnOlderLogIsReportedThoughAllPacketsExpire(t *testing.T) {
	for name, row := range map[string]struct {
		change  func(b []byte) []byte // nil: the log is removed
		damaged bool
	}{
		"as it is":            {func(b []byte) []byte { return b }, false},
		"removed":             {nil, true},
		"emptied":             {func([]byte) []byte { return nil }, true},
		"all zeros":           {func(b []byte) []byte { clear(b); return b }, true},
		"its header only":     {func(b []byte) []byte { return b[:logHeader] }, true},
		"first record bad":    {func(b []byte) []byte { b[logHeader+12] ^= 1; return b }, true},
		"one in the middle":   {func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, true},
		"cut in the middle":   {func(b []byte) []byte { return b[:len(b)/2] }, true},
		"its last batch lost": {func(b []byte) []byte { clear(b[len(b)-150:]); return b }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, log, batches := oldLogs(t)
			b, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			if row.change == nil {
				err = os.Remove(log)
			} else {
				err = os.WriteFile(log, row.change(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			want := error(nil)
			if row.damaged {
				want = ErrDamaged
			}
			v, err := OpenView(dir, ViewOptions{})
			if !errors.Is(err, want) {
				t.Errorf("looking gives %v", err)
			}
			if err == nil {
				v.Close()
			}
			if v, err = OpenView(dir, ViewOptions{Tolerant: true}); err != nil {
				t.Fatal(err)
			}
			if len(v.Findings()) > 0 != row.damaged {
				t.Errorf("findings are %v", v.Findings())
			}
			v.Close()
			s, err := Open(dir, Options{MemTable: minMemTable})
			if !errors.Is(err, want) {
				t.Errorf("serving gives %v", err)
			}
			if err != nil {
				// What is left is still served on request.
				if s, err = Open(dir, Options{MemTable: minMemTable, AcceptLoss: true}); err != nil {
					t.Fatal(err)
				}
			}
			defer s.Close()
			if ids, _ := scanned(t, s); !row.damaged && uint64(len(ids)) != batches {
				t.Errorf("%d packets of %d", len(ids), batches)
			}
		})
	}
}

func TestLogOfWhatIsInTablesIsHarmlessWhateverItHolds(t *testing.T) {
	for name, change := range map[string]func(b []byte){
		"as it is":         func([]byte) {},
		"all zeros":        func(b []byte) { clear(b) },
		"first record bad": func(b []byte) { b[logHeader+12] ^= 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, log, batches := oldLogs(t)
			older, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			s := smallStore(t, dir)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			change(older) // which a crash kept from being removed
			if err := os.WriteFile(log, older, 0o600); err != nil {
				t.Fatal(err)
			}
			v, err := OpenView(dir, ViewOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := viewed(t, v); uint64(len(got)) != batches {
				t.Errorf("a view shows %d packets of %d", len(got), batches)
			}
			v.Close()
			s = smallStore(t, dir)
			if ids, _ := scanned(t, s); uint64(len(ids)) != batches {
				t.Errorf("%d packets of %d", len(ids), batches)
			}
		})
	}
}

func TestStartThatForgivesGapsSaysSoUntilTheLogsAreInTables(t *testing.T) {
	live, dir := t.TempDir(), t.TempDir()
	s := openTest(t, live, Options{MemTable: 8 << 20, Sync: SyncNever()})
	var b Batch
	for i := range uint64(30) {
		b.Reset()
		for j := range uint64(100) {
			b.Put(PacketID{1, 1, 100*i + j}, &Packet{Payload: make([]byte, 1000)})
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	copyFolder(t, live, dir)
	s = openTest(t, dir, Options{MemTable: 8 << 20})
	if names, err := logNames(s.folder.name(dbName)); err != nil || len(names) != 1 || !s.anchor.last.always {
		t.Errorf("the anchor is %+v while there are the logs %q, %v", s.anchor.last, names, err)
	}
}
