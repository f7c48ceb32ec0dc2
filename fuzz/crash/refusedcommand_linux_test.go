package crash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/inject"
)

// The kernel tells once of a page that the disk refused. So a command fails, or all that it wrote
// is on the disk.
func TestCommandOnADiskThatRefusesInPartFailsOrWritesAll(t *testing.T) {
	c := newCopies(t, build(t, "cmd/holdfast"))
	for name, row := range map[string]struct {
		read func(string) ([]byte, error) // as a dump, what a file or folder holds
		args []string                     // its name comes last
	}{
		"backup":          {os.ReadFile, []string{"backup", "--admin", c.admin, "--to"}},
		"backup of files": {c.readArchive, []string{"backup", "--admin", c.admin, "--files", "--to"}},
		"dump":            {os.ReadFile, []string{"dump", c.folder, "--format", "msgpack", "-o"}},
		"restore":         {c.readFolder, []string{"restore", c.archive}},
		"load":            {c.readFolder, []string{"load", c.dump}},
		"compact":         {c.readFolder, []string{"compact"}}, // of a folder that was restored there
	} {
		t.Run(name, func(t *testing.T) { c.refuse(t, row.read, row.args) })
	}
}

// copies are a store that is served, and copies of it.
type copies struct {
	binary, admin              string
	dir, dump, archive, folder string
	want                       []byte // what the dump holds
}

func newCopies(t *testing.T, binary string) *copies {
	data := filepath.Join(smallDisk(t, refusingMiB), "data") // where the files of the journal are short
	fillMostlyPopped(t, data, 0, 20_000)
	s, err := Start(serveAll(binary, "always"), data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	<-s.listeners[redisListener].known
	<-s.listeners[adminListener].known
	c := &copies{binary: binary, admin: s.listeners[adminListener].addr, dir: t.TempDir()}
	c.dump, c.archive, c.folder = filepath.Join(c.dir, "dump"), filepath.Join(c.dir, "archive"), filepath.Join(c.dir, "folder")
	for _, args := range [][]string{
		{"set", "jobs", "lease=7s", "--redis", s.listeners[redisListener].addr}, // for the journal
		{"backup", "--admin", c.admin, "--to", c.dump},
		{"backup", "--admin", c.admin, "--files", "--to", c.archive},
		{"restore", c.archive, c.folder},
	} {
		if err := c.run(args...); err != nil {
			t.Fatal(err)
		}
	}
	if c.want, err = os.ReadFile(c.dump); err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs a command. Its error says what the command said. On one processor ext4 chooses the same
// pages each time.
func (c *copies) run(args ...string) error {
	if out, err := exec.Command("taskset", append([]string{"-c", "0", c.binary}, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", args[0], err, out)
	}
	return nil
}

const refusingMiB = 64

// refuse runs a command on one disk after the other until it failed, and in a sweep on more. One
// refuses many pages, mostly of large files, and three refuse one of those where small files are.
func (c *copies) refuse(t *testing.T, read func(string) ([]byte, error), args []string) {
	const begin, pages = 8, 72
	failures, tries, from := 0, 0, rand.IntN(pages)
	for ; (failures == 0 && tries < pages || tries < inject.Runs()/4) && !t.Failed(); tries++ {
		first, apart := begin+int64(from+tries-tries/4)%pages, int64(refusingMiB<<8)
		if tries%4 == 0 {
			apart = 1 << rand.IntN(8)
		}
		fails := true // as good as that is a disk that cannot be made here, which skips the test
		t.Run("", func(t *testing.T) { fails = c.refuseOnce(t, first, apart, read, args) })
		failures += oneIf(fails)
	}
	if t.Logf("%d of %d disks made it fail", failures, tries); failures == 0 {
		t.Error("no disk refused what it writes")
	}
}

var refusal = regexp.MustCompile(`: holdfast: .*(no space left on device|input/output error)`)

// refuseOnce runs a command whose disk refuses some pages, and compares what it made once the disk
// has grown.
func (c *copies) refuseOnce(t *testing.T, first, apart int64, read func(string) ([]byte, error), args []string) (fails bool) {
	kept := args[0] == "compact" // what is there stays, whatever happens
	disk := newRefusingDisk(t, refusingMiB, first, apart, func(mount string) {
		if kept {
			if err := c.run("restore", c.archive, filepath.Join(mount, "made")); err != nil {
				t.Fatal(err)
			}
		}
	})
	made := filepath.Join(disk.mount, "made")
	failed := c.run(append(args, made)...)
	disk.grow()
	got, err := read(made)
	if whole := err == nil && bytes.Equal(got, c.want); !whole && (kept || failed == nil || err == nil) {
		t.Errorf("page %d and each %d further are refused: the disk has %d of %d bytes, or others: %v; the command said: %v",
			first, apart, len(got), len(c.want), err, failed)
	}
	if failed != nil && !refusal.MatchString(failed.Error()) {
		t.Errorf("it does not say what the disk refused: %v", failed)
	}
	return failed != nil
}

func (c *copies) readFolder(folder string) ([]byte, error) {
	if err := c.run("verify", folder); err != nil {
		return nil, err
	}
	return exec.Command(c.binary, "dump", folder, "--format", "msgpack").Output()
}

func (c *copies) readArchive(archive string) ([]byte, error) {
	folder := filepath.Join(c.dir, "read")
	defer os.RemoveAll(folder)
	if err := c.run("restore", archive, folder); err != nil {
		return nil, err
	}
	return c.readFolder(folder)
}
