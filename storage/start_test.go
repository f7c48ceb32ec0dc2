package storage

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

func TestRefusedStartLeavesJournalAndTablesAsTheyWere(t *testing.T) {
	s := smallStore(t, t.TempDir())
	applied(t, s, one(1, content.Packet{}))
	settled(t, s)
	applied(t, s, one(2, content.Packet{}))
	dir := killed(t, s)
	before := files(t, dir)

	s = openTest(t, dir, Options{Window: minWindow})
	ids, tally := scanned(t, s)
	if len(ids) != 2 {
		t.Errorf("a scan shows %v", ids)
	}
	var mismatch *content.MismatchError
	if err := s.Verify(content.Tally{Live: 1}); !errors.As(err, &mismatch) {
		t.Fatalf("another tally gives %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if after := files(t, dir); !maps.Equal(after, before) {
		t.Errorf("the files are %q, were %q", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}

	s = openTest(t, dir, Options{Window: minWindow})
	if err := s.Verify(tally); err != nil {
		t.Fatal(err)
	}
	if list, err := tables.ReadList(filepath.Join(dir, dbName)); err != nil || list.Floor.Batch != 2 || len(logFiles(t, dir)) != 0 {
		t.Errorf("after a start the tables have batch %d, and the journal %d segments; %v", list.Floor.Batch, len(logFiles(t, dir)), err)
	}
}

func TestSystemStartOnAFullDiskUsesTheRoomThatTheJournalKept(t *testing.T) {
	t.Parallel()
	_, at := mountImage(t, 64, "")
	dir := filepath.Join(at, "data")
	p := newPusher(t, openTest(t, dir, Options{Window: minWindow}))
	for range 16 {
		p.push(64)
	}
	reserved(t, p.s)
	spare := func() (files []string) {
		paths, err := filepath.Glob(filepath.Join(dir, journalName, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(paths, func(path string) bool { return slices.Contains(logFiles(t, dir), path) })
	}
	abandoned(p.s)
	kept := spare()

	// Somebody else has the room that was kept.
	for _, path := range kept {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	foreign := filepath.Join(at, "foreign")
	fillDisk(t, foreign)
	_, err := Open(dir, Options{Window: minWindow})
	if said := regexp.MustCompile(`free (\d+) more`).FindStringSubmatch(errorText(err)); !errors.Is(err, ErrFull) || said == nil {
		t.Errorf("without room a start gives %v", err)
	} else if missing, _ := strconv.Atoi(said[1]); missing < 16*64*1000 || missing > 4<<20 {
		t.Errorf("of about 1 MB it says %q", said[0])
	}

	// They are there again.
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	for _, path := range kept {
		if err := os.WriteFile(path, bytes.Repeat([]byte{0}, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fillDisk(t, foreign)
	p.check(openTest(t, dir, Options{Window: minWindow}))
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
