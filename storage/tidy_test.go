package storage

import (
	"path/filepath"
	"testing"
	"time"
)

// drained fills a fresh store with tables of level 0 and pops all of it.
func drained(t *testing.T, s *Store) *pusher {
	t.Helper()
	p := newPusher(t, s)
	for range 180 {
		if !p.push(64) {
			t.Fatal("no room")
		}
	}
	for len(p.live) > 0 && p.pop(64) {
	}
	if levels := s.db.Levels(); levels[0].Size < 2*tidyTables*minMemTable || levels[len(levels)-1].Size > 0 {
		t.Fatalf("not all is in level 0: %+v", levels)
	}
	return p
}

// tidied waits until little more is stored than what is always there.
func tidied(t *testing.T, s *Store, meanwhile func()) {
	t.Helper()
	limit := time.Now().Add(time.Minute)
	for s.tableBytes() > tidyTables*minMemTable {
		meanwhile()
		if time.Now().After(limit) {
			t.Fatalf("%d bytes are still stored and nothing is live", s.tableBytes())
		}
		time.Sleep(20 * time.Millisecond) // between two looks
	}
}

func TestStoreAtRestGivesTheRoomOfLevelZeroBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir, Options{MemTable: minMemTable, Sync: SyncNever()})
	p := drained(t, s)
	tidied(t, s, func() {})
	p.check()
}

func TestStoreWithLittleToDoGivesRoomBackAtWork(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir(), Options{MemTable: minMemTable, Sync: SyncNever()})
	p := drained(t, s)
	// Once it has been merged, merging needs no rest.
	if _, err := s.sink(); err != nil {
		t.Fatal(err)
	}
	for range 180 {
		p.push(64)
	}
	for len(p.live) > 0 && p.pop(64) {
	}
	if err := s.rotate(); err != nil {
		t.Fatal(err)
	}
	tidied(t, s, func() { p.push(1) })
	p.check()
}

func TestMergeEndsAlthoughBatchesComeAtFullSpeed(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir(), Options{MemTable: minMemTable, Sync: SyncNever()})
	p := newPusher(t, s)
	for range 600 {
		p.push(64)
	}
	merged := make(chan error, 1)
	go func() { merged <- s.mergeAlone() }()
	const most = 1500 // batches, of which 16 fill a log
	for pushed := 0; ; pushed++ {
		select {
		case err := <-merged:
			if err != nil || pushed == 0 {
				t.Errorf("error %v, %d batches were pushed meanwhile", err, pushed)
			}
			p.check()
			return
		default:
		}
		if pushed == most {
			t.Errorf("the merge goes on after %d batches", pushed)
			<-merged
			return
		}
		p.push(64)
	}
}

func TestMergeIsWantedWhenTooMuchIsDeadAndNotAtFullSpeed(t *testing.T) {
	const table = 8 << 20
	for name, row := range map[string]struct {
		t    tidier
		now  scene
		want bool
	}{
		"all is live, at rest":          {tidier{quiet: 5}, scene{stored: 900 << 20, live: 900 << 20}, false},
		"little is stored":              {tidier{quiet: 5}, scene{stored: tidyTables * table}, false},
		"dead as live and a bit":        {tidier{quiet: 5}, scene{stored: 240 << 20, live: 100 << 20}, true},
		"the same at work":              {tidier{}, scene{stored: 240 << 20, live: 100 << 20}, false},
		"too much is dead at work":      {tidier{}, scene{stored: 340 << 20, live: 100 << 20}, true},
		"a table now and then":          {tidier{}, scene{stored: 340 << 20, live: 100 << 20, seconds: 16, logs: 2}, true},
		"a table each second":           {tidier{}, scene{stored: 340 << 20, live: 100 << 20, seconds: 16, logs: 16}, false},
		"much was deleted since":        {tidier{quiet: 5, wait: 1}, scene{stored: 340 << 20, live: 100 << 20, dying: 340 << 20}, true},
		"level 0 only, at work":         {tidier{}, scene{stored: 120 << 20, upper: 120 << 20}, false},
		"the last merge gained little":  {tidier{quiet: 5, wait: 1}, scene{stored: 340 << 20, live: 100 << 20}, false},
		"a merge of over a second":      {tidier{quiet: 5}, scene{stored: 900 << 20, live: 200 << 20}, false},
		"the same, beyond the bound":    {tidier{quiet: 5}, scene{stored: 1100 << 20, live: 200 << 20}, true},
		"the same, short of room":       {tidier{quiet: 5}, scene{stored: 900 << 20, live: 200 << 20, short: true}, true},
		"a large queue drained slowly":  {tidier{quiet: 5}, scene{stored: 2 << 30, upper: 350 << 20}, true},
		"tombstones, within the bound":  {tidier{quiet: 5}, scene{stored: 250 << 20, upper: 150 << 20}, false},
		"a long merge":                  {tidier{quiet: 5}, scene{stored: 6 << 30, live: 1 << 30}, false},
		"a short merge of much garbage": {tidier{quiet: 5}, scene{stored: 30 << 30, live: 1 << 20}, true},
		"short of room":                 {tidier{wait: 1}, scene{stored: 100 << 20, live: 90 << 20, short: true}, true},
		"somebody else fills the disk":  {tidier{quiet: 5}, scene{stored: 340 << 20, short: true, filling: true}, false},
	} {
		row.now.table, row.now.allowance = table, 300<<20
		if got := row.t.wants(&row.now); got != row.want {
			t.Errorf("%s: wanted is %v", name, got)
		}
	}
}

func TestLogThatSinkingBeginsIsSynced(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{MemTable: minMemTable})
	p := newPusher(t, s)
	p.push(10)
	if sunk, err := s.sink(); !sunk || err != nil {
		t.Fatal(sunk, err)
	}
	logs, err := logNames(filepath.Join(dir, dbName))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %q, error %v", logs, err)
	}
	s.wal.mu.Lock()
	newest := s.wal.files[len(s.wal.files)-1].file.Name()
	s.wal.mu.Unlock()
	if newest != logs[0] {
		t.Errorf("the log that is synced is %s, and batches go to %s", newest, logs[0])
	}
	if sunk, err := s.sink(); sunk || err != nil {
		t.Errorf("a second time: sunk %v, error %v", sunk, err)
	}
	p.check()
}
