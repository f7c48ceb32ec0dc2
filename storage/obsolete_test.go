package storage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// heldLog makes a folder as a kill leaves it while somebody reads: packets
// were pushed, then a reader came, and so many others came that newer logs came
// and went. In one of those the first packets were deleted. want is what must
// be there, and secret the folder's.
func heldLog(t *testing.T, expiry int64, sync SyncMode) (dir string, want []PacketID, secret []byte) {
	t.Helper()
	s := openTest(t, t.TempDir(), Options{MemTable: minMemTable, Sync: sync})
	var b Batch
	old := make([]PacketID, 50)
	for i := range old {
		old[i] = PacketID{1, 1, uint64(i)}
		b.Put(old[i], &Packet{Expiry: expiry})
	}
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	held := logName(s.wal.next - 1)
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	dir = t.TempDir()
	done := errors.New("done")
	err = n.Packets(QueueRange{}, func(PacketID, *Meta) error { // an iterator is open now
		deleted := false
		for seq := uint64(1000); ; seq++ {
			id := PacketID{1, 1, seq}
			want = append(want, id)
			b.Reset()
			b.Put(id, &Packet{Payload: make([]byte, 1000), Expiry: expiry})
			if err := s.Apply(&b); err != nil {
				return err
			}
			names, err := logNames(s.folder.name(dbName))
			if err != nil {
				return err
			}
			numbers := make([]int, len(names))
			for i, name := range names {
				numbers[i], _ = logNumber(filepath.Base(name))
			}
			if !deleted && len(names) == 2 {
				b.Reset()
				for _, id := range old {
					b.Delete(id, Removed{Expires: expiry != 0})
				}
				if err := s.Apply(&b); err != nil {
					return err
				}
				deleted = true
			}
			if deleted && len(names) == 2 && filepath.Base(names[0]) == held && numbers[1] > numbers[0]+2 {
				copyFolder(t, s.folder.path, dir)
				return done
			}
		}
	})
	if !errors.Is(err, done) {
		t.Fatal(err)
	}
	return dir, want, s.secret
}

func TestLogThatAReaderKeptIsNotReadAgain(t *testing.T) {
	later := time.Now().Add(time.Hour).UnixMilli()
	for name, row := range map[string]struct {
		expiry int64
		sync   SyncMode
	}{
		"packets that stay":       {0, SyncAlways()},
		"packets that expire":     {later, SyncAlways()},
		"without flushes":         {0, SyncNever()},
		"expiry, without flushes": {later, SyncNever()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, want, _ := heldLog(t, row.expiry, row.sync)
			for _, tolerant := range []bool{false, true} {
				v := openView(t, dir, ViewOptions{Tolerant: tolerant})
				if found := v.Findings(); len(found) > 0 {
					t.Errorf("findings %v", found)
				}
				if got := viewed(t, v); !slices.Equal(got, want) {
					t.Errorf("%d packets are seen, want %d", len(got), len(want))
				}
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
			}
			s := openTest(t, dir, Options{MemTable: minMemTable, Sync: row.sync})
			if err := s.Compact(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			got, tally := scanned(t, s)
			if err := s.Verify(tally); err != nil || !slices.Equal(got, want) {
				t.Errorf("%d packets are there, want %d: %v", len(got), len(want), err)
			}
		})
	}
}

func TestObsoleteLogIsGoneBeforeTheDatabaseIsOpened(t *testing.T) {
	dir, _, secret := heldLog(t, 0, SyncNever())
	path := filepath.Join(dir, dbName)
	before, err := logNames(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := removeObsolete(path, secret); err != nil {
		t.Fatal(err)
	}
	if left, err := logNames(path); err != nil || !slices.Equal(left, before[1:]) {
		t.Errorf("of the logs %q there are %q, %v; want the newest", before, left, err)
	}
}

func TestLogIsObsoleteOnlyWhenNothingInItIsNewerThanTables(t *testing.T) {
	s := smallStore(t, t.TempDir())
	for i := range uint64(4) {
		if err := s.Apply(one(i, Packet{})); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(s.wal.files[0].file.Name())
	if err != nil {
		t.Fatal(err)
	}
	last := readLog(whole, anyVersion).last
	torn := bytes.Clone(whole)
	second := bytes.Index(torn, []byte(controlKey)) // of the first transaction, or a later one
	torn[second] ^= 1
	for name, row := range map[string]struct {
		b      []byte
		newest uint64
		want   bool
	}{
		"all in tables":             {whole, last, true},
		"more in tables":            {whole, last + 5, true},
		"the last one not":          {whole, last - 1, false},
		"none":                      {whole, 0, false},
		"damaged, the last one not": {torn, last - 1, false},
		"empty":                     {make([]byte, 100), last, false},
	} {
		if got := isObsolete(row.b, row.newest, s.secret); got != row.want {
			t.Errorf("%s: obsolete is %t", name, got)
		}
	}
}

func TestSalvageReadsAnObsoleteLogWhereATableIsDamaged(t *testing.T) {
	dir, want, _ := heldLog(t, 0, SyncAlways())
	tables, err := filepath.Glob(filepath.Join(dir, dbName, "*"+tableSuffix))
	if err != nil || len(tables) == 0 {
		t.Fatalf("tables %q, %v", tables, err)
	}
	b, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(b)*8/10; at += 500 {
		b[at] ^= 0x5a
		b[at+9] ^= 0x5a
	}
	if err := os.WriteFile(tables[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	v := openView(t, dir, ViewOptions{Tolerant: true})
	got := viewed(t, v)
	for _, id := range want {
		if !slices.Contains(got, id) {
			t.Fatalf("packet %v, which is in the log, is not there", id)
		}
	}
	told := slices.ContainsFunc(v.Findings(), func(f Finding) bool {
		return f.Kind == FindingLog && strings.Contains(f.What, "popped may be there again")
	})
	if !told {
		t.Errorf("findings %v do not tell that the log was read", v.Findings())
	}
}
