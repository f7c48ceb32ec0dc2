package doctor

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

// What some file systems do, so that a data folder should not be on them.
const (
	remote   = "is reached over a network: locks and syncs there may not hold what they promise"
	program  = "is a program: syncs there may not hold what they promise"
	volatile = "is in memory: all is lost when the machine stops"
	layered  = "belongs to the container: all is lost with it"
)

// fileSystems are those with a name, by their magic numbers. wrong is empty where a folder is well.
var fileSystems = map[int64]struct{ name, wrong string }{
	unix.EXT4_SUPER_MAGIC: {"ext4", ""}, unix.XFS_SUPER_MAGIC: {"xfs", ""}, unix.BTRFS_SUPER_MAGIC: {"btrfs", ""},
	unix.F2FS_SUPER_MAGIC: {"f2fs", ""}, 0x2fc12fc1: {"zfs", ""},
	unix.NFS_SUPER_MAGIC: {"nfs", remote}, unix.CEPH_SUPER_MAGIC: {"ceph", remote}, unix.AFS_SUPER_MAGIC: {"afs", remote},
	unix.SMB_SUPER_MAGIC: {"smb", remote}, unix.CIFS_SUPER_MAGIC: {"smb", remote}, unix.SMB2_SUPER_MAGIC: {"smb", remote},
	unix.V9FS_MAGIC: {"9p", remote}, unix.FUSE_SUPER_MAGIC: {"fuse", program},
	unix.TMPFS_MAGIC: {"tmpfs", volatile}, unix.RAMFS_MAGIC: {"tmpfs", volatile}, unix.OVERLAYFS_SUPER_MAGIC: {"overlay", layered},
}

// fileSystem looks at the kind of the file system below a folder.
func fileSystem(path string) (Finding, bool) {
	var st unix.Statfs_t
	err := unix.Statfs(path, &st)
	return fileSystemOf(int64(st.Type) & 0xffffffff), err == nil
}

func fileSystemOf(magic int64) Finding {
	switch kind, ok := fileSystems[magic]; {
	case !ok:
		return seen("filesystem", "of type %#x", magic)
	case kind.wrong == "":
		return seen("filesystem", "%s", kind.name)
	default:
		return seen("filesystem", "%s %s", kind.name, kind.wrong).but(true, Warn, "put the folder on a local disk (a volume of a container)")
	}
}

// syncData brings what was written to a file to the device.
func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// lookAtSystem checks what does not depend on the folder.
func lookAtSystem() []Finding {
	meminfo, _ := os.ReadFile("/proc/meminfo")
	findings := []Finding{memoryFor(meminfo, daemon.Memory())}
	var clock unix.Timex
	if state, err := unix.Adjtimex(&clock); err == nil {
		alone := state == unix.TIME_ERROR || clock.Status&unix.STA_UNSYNC != 0
		findings = append(findings, clockOf(alone, time.Duration(clock.Maxerror)*time.Microsecond))
	}
	return findings
}

// littleMemory is what a server with some hundred thousand packets and its buffers takes.
const littleMemory = 256 << 20

// memoryFor looks at the memory of the machine or its container.
func memoryFor(meminfo []byte, all int64) Finding {
	var available int64 // 0 where the system does not tell: that is worth a warning
	_, text, _ := bytes.Cut(meminfo, []byte("MemAvailable:"))
	if fields := bytes.Fields(text); len(fields) > 0 {
		kib, _ := strconv.ParseInt(string(fields[0]), 10, 64)
		available = min(all, kib<<10)
	}
	return seen("memory", "%s, of which %s are available", size(all), size(available)).
		but(available < littleMemory, Warn, "have %s available, and 110 bytes for each queued packet", size(littleMemory))
}

func clockOf(alone bool, mayBeOff time.Duration) Finding {
	if alone {
		return seen("clock", "nothing synchronizes the clock: delays, expiries and windows follow it").but(true, Warn, "run chrony or systemd-timesyncd")
	}
	return seen("clock", "synchronized, off by at most %v", mayBeOff.Round(time.Millisecond))
}
