package storage

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4/table"
	"golang.org/x/sys/unix"
)

// fdatasync also flushes the dirty pages of the file's mappings: msync(MS_SYNC) itself is
// vfs_fsync_range of the file behind the mapping.
func fdatasync(f *os.File) error {
	for {
		// Interrupted means not begun; any other error is final, because the kernel marks pages
		// clean that it failed to write.
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return err
		}
	}
}

// mapping is one line of the process's memory map.
type mapping struct {
	start, length uintptr
	name          string // path of the file
}

// mappings returns the shared mappings of the files below a folder whose names end in suffix: those
// that Badger made, because what this package maps for a while is private. The folder is an
// absolute path without links: that is how the kernel names the files.
func mappings(folder, suffix string) ([]mapping, error) {
	file, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	const shared = 3 // the place of the s in "rw-s"
	var found []mapping
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Bytes()
		if !bytes.HasSuffix(line, []byte(suffix)) {
			continue
		}
		span, rest, _ := strings.Cut(string(line), " ")
		at := bytes.IndexByte(line, '/')
		from, to, ok := strings.Cut(span, "-")
		if at < 0 || !ok || !strings.HasPrefix(rest[min(len(rest), shared):], "s") || !strings.HasPrefix(string(line[at:]), folder+"/") {
			continue
		}
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 == nil && err2 == nil && start < end {
			found = append(found, mapping{uintptr(start), uintptr(end - start), string(line[at:])})
		}
	}
	return found, lines.Err()
}

// madvise gives advice about one mapping. It does not go through Go's scheduler, where a call that
// takes long loses its processor and, among compactions at full speed, waits a tenth of a second
// for another.
func madvise(m mapping, advice int) error {
	_, _, errno := unix.RawSyscall(unix.SYS_MADVISE, m.start, m.length, uintptr(advice))
	if errno != 0 {
		return errno
	}
	return nil
}

// adviseLogs tells the kernel that the logs are touched page by page: without it a page fault maps
// a large folio, and each small flush then writes far more than was changed. Best effort.
func adviseLogs(dir string) {
	maps, err := mappings(dir, logSuffix)
	if err != nil {
		return
	}
	for _, m := range maps {
		_ = madvise(m, unix.MADV_RANDOM)
	}
}

// allocate gives a file its blocks now. The contents stay as they are.
func allocate(f *os.File, size int64) error {
	return unix.Fallocate(int(f.Fd()), 0, 0, size)
}

// dropMappings gives the pages of the mapped tables back for which held is true. The caller keeps
// those mapped.
func dropMappings(dir string, held func(number uint64) bool) {
	adviseTables(dir, held, unix.MADV_DONTNEED)
}

// reclaim is advice that changes no byte, whatever it is given to: pages of files go to their file,
// all others to swap, if there is any. Linux has it since 5.4.
const reclaim = unix.MADV_PAGEOUT

// evictMappings has the kernel reclaim the pages of the mapped tables for which chosen is true.
// Those may be unmapped meanwhile.
func evictMappings(dir string, chosen func(number uint64) bool) {
	adviseTables(dir, chosen, reclaim)
}

// adviseTables gives advice about the mapped tables for which chosen is true. Best effort.
func adviseTables(dir string, chosen func(number uint64) bool, advice int) {
	maps, err := mappings(dir, tableSuffix)
	if err != nil {
		return
	}
	for _, m := range maps {
		if number, ok := table.ParseFileID(m.name); ok && chosen(number) {
			_ = madvise(m, advice)
		}
	}
}
