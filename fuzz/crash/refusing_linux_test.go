package crash

import (
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

// newRefusingDisk is a disk that has room for all but some of its pages: a write to one of these
// fails when it is synced. Once it has grown it takes them, too.
func newRefusingDisk(t *testing.T) *thinDisk {
	t.Helper()
	const mib, first, apart = 512, 32, 40 // so that a table is not written at once; the first pages are left to small files
	d := mountRoom(t, mib+2)
	if err := os.WriteFile(d.image, make([]byte, mib<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	d.run(true, "mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "^has_journal", "-E", "nodiscard,lazy_itable_init=0", d.image)
	image, err := os.OpenFile(d.image, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = unix.Fallocate(int(image.Fd()), 0, 0, mib<<20) // mkfs makes holes
	for at := int64(first << 20); at < mib<<20; at += apart << 20 {
		page := at + rand.Int64N(apart<<8)<<12
		err = errors.Join(err, unix.Fallocate(int(image.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, page, 4096))
	}
	if err := errors.Join(err, image.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.room, "full"), make([]byte, mib<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal("there is room for all pages:", err)
	}
	d.attach()
	t.Cleanup(d.detach)
	return d
}

// A disk that refuses a page of a table tells a sync only, and only once: what the table would have
// replaced must still be there.
func TestDiskThatRefusesInPartLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: left to longer runs")
	}
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
	refusing := newRefusingDisk(t)
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
