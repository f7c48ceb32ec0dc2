package crash

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// newRefusingDisk is a disk of some MiB that has room for all but some of its pages, each so many
// apart: a write to one of these fails when it is synced. What put writes is on the disk, if it is
// not nil. Once the disk has grown it takes all pages.
func newRefusingDisk(t *testing.T, mib, first, apart int64, put func(mount string)) *thinDisk {
	t.Helper()
	const page = 4096
	d := mountRoom(t, int(mib)+2)
	if err := os.WriteFile(d.image, make([]byte, mib<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	d.run(true, "mkfs.ext4", "-q", "-F", "-b", "4096", "-N", "256", "-O", "^has_journal", "-E", "nodiscard,lazy_itable_init=0", d.image)
	d.attach()
	t.Cleanup(d.detach)
	if put != nil {
		put(d.mount)
	}
	d.detach()
	defer d.attach()
	image, err := os.OpenFile(d.image, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = unix.Fallocate(int(image.Fd()), 0, 0, mib<<20) // mkfs makes holes
	for at, b := first*page, make([]byte, page); at < mib<<20; at += apart * page {
		if _, e := image.ReadAt(b, at); bytes.Count(b, []byte{0}) == page { // nothing is there
			err = errors.Join(err, e, unix.Fallocate(int(image.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, page))
		}
	}
	if err := errors.Join(err, image.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.room, "full"), make([]byte, (mib+2)<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal("there is room for all pages:", err)
	}
	return d
}

// A disk that refuses a page of a table tells a sync only, and only once: what the table would have
// replaced must still be there.
func TestDiskThatRefusesInPartLosesNothing(t *testing.T) {
	binary, skipped := build(t, "cmd/holdfast"), false
	for try := 0; ; try++ { // a disk may refuse the journal, or what nothing takes
		hit := false
		ok := t.Run("", func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			hit = refuseInPart(t, binary)
		})
		if hit || skipped || !ok {
			return
		}
		if try == 9 {
			t.Fatal("no disk refused a table")
		}
	}
}

// refuseInPart loads a server until the disk refuses a page, and kills it. hit says that it was one
// of a table.
func refuseInPart(t *testing.T, binary string) (hit bool) {
	const first, apart = 8 << 10, 10 << 10 // so that a table is not written at once; the first pages are left to small files
	refusing := newRefusingDisk(t, 512, first+rand.Int64N(apart), apart, nil)
	run := newFilling(t, binary, refusing.mount)
	check(t, run.start())
	check(t, run.load(func() {
		run.until(func() bool {
			hit = strings.Contains(run.server.Log().String(), "cannot make table")
			return hit || run.refused.Load() > 0
		})
	}, false))
	t.Logf("it said of a table: %v; its log ends with:\n%s", hit, run.server.Log())
	refusing.grow()
	check(t, run.start())
	roomAgain(t, run)
	return hit
}
