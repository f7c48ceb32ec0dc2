package crash

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
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
	command, skipped := serve(build(t, "cmd/holdfast")), false
	for try := 0; ; try++ { // a disk may refuse the journal, or what nothing takes
		hit := false
		ok := t.Run("", func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			hit = refuseInPart(t, command)
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
func refuseInPart(t *testing.T, command Command) (hit bool) {
	const first, apart = 8 << 10, 10 << 10 // so that a table is not written at once; the first pages are left to small files
	refusing := newRefusingDisk(t, 512, first+rand.Int64N(apart), apart, nil)
	d := startDisk(t, refusing.mount, command)
	d.size = pinpriq.MaxPayload
	var load sync.WaitGroup
	for n := range 4 {
		load.Go(func() { d.pushAlong(n) })
		load.Go(d.popAlong)
	}
	const enough = 20_000                                                                            // packets, of which the disk does not hold half
	for begun := time.Now(); !hit && d.r.pushed.Load() < enough && time.Since(begun) < deadline/6; { // it may refuse the journal, and wait
		select {
		case <-d.r.server.Exited():
			begun = time.Time{}
		case <-time.After(time.Millisecond): // until the next look at the log
		}
		hit = strings.Contains(d.r.server.Log().String(), "cannot make table")
	}
	d.stopped.Store(true)
	d.r.server.Kill()
	load.Wait()
	t.Logf("%d packets acknowledged, %d popped; it said of a table: %v; its log ends with:\n%s",
		d.r.pushed.Load(), d.r.ops[ofPinpriq].Load(), hit, d.r.server.Log())
	refusing.grow()
	d.start()
	d.pushWorks(d.r.queues.byKind[standing][0])
	d.check()
	return hit
}
