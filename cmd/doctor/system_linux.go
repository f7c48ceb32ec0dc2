package doctor

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

// The kinds of file systems that a data folder should not be on, by what they do.
const (
	remote   = "is reached over a network: locks and syncs there may not hold what they promise"
	volatile = "is in memory: all is lost when the machine stops"
	layered  = "belongs to the container: all is lost with it"
)

// doubtful are such file systems, by their magic numbers.
func doubtful(magic int64) (name, why string) {
	switch magic {
	case unix.NFS_SUPER_MAGIC:
		return "nfs", remote
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "smb", remote
	case unix.CEPH_SUPER_MAGIC:
		return "ceph", remote
	case unix.AFS_SUPER_MAGIC:
		return "afs", remote
	case unix.V9FS_MAGIC:
		return "9p", remote
	case unix.FUSE_SUPER_MAGIC:
		return "fuse", "is a program: syncs there may not hold what they promise"
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return "tmpfs", volatile
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay", layered
	}
	return "", ""
}

// fileSystem looks at the kind of the file system below a folder.
func fileSystem(path string) (Finding, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Finding{}, false
	}
	return fileSystemOf(int64(st.Type) & 0xffffffff), true
}

func fileSystemOf(magic int64) Finding {
	names := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.F2FS_SUPER_MAGIC: "f2fs", 0x2fc12fc1: "zfs",
	}
	if name, why := doubtful(magic); why != "" {
		return Finding{"filesystem", Warn, name + " " + why, "put the folder on a local disk (a volume of a container)"}
	}
	name := names[magic]
	if name == "" {
		name = fmt.Sprintf("of type %#x", magic)
	}
	return Finding{"filesystem", OK, name, ""}
}

// syncData brings what was written to a file to the device.
func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// lookAtSystem checks what does not depend on the folder.
func lookAtSystem() (findings []Finding) {
	meminfo, _ := os.ReadFile("/proc/meminfo")
	findings = append(findings, memoryFor(meminfo, daemon.Memory()), swapOf(meminfo))
	if n, ok := numberIn("/proc/sys/vm/overcommit_memory"); ok {
		findings = append(findings, overcommitOf(n))
	}
	var clock unix.Timex
	if state, err := unix.Adjtimex(&clock); err == nil {
		findings = append(findings, clockOf(state == unix.TIME_ERROR || clock.Status&unix.STA_UNSYNC != 0, time.Duration(clock.Maxerror)*time.Microsecond))
	}
	if n, ok := numberIn("/proc/sys/net/core/somaxconn"); ok {
		findings = append(findings, backlogOf(n))
	}
	return findings
}

func numberIn(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
}

// meminfoOf is a line of /proc/meminfo, in bytes.
func meminfoOf(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) > 1 && string(fields[0]) == name+":" {
			n, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			return n << 10
		}
	}
	return 0
}

// littleMemory is what a server with some hundred thousand packets and its buffers takes.
const littleMemory = 256 << 20

// memoryFor looks at the memory of the machine or its container.
func memoryFor(meminfo []byte, all int64) Finding {
	available := min(all, meminfoOf(meminfo, "MemAvailable"))
	f := Finding{"memory", OK, fmt.Sprintf("%s, of which %s are available", size(all), size(available)), ""}
	if available < littleMemory {
		f.Verdict, f.Do = Warn, "have "+size(int64(littleMemory))+" available, and 110 bytes for each queued packet"
	}
	return f
}

func swapOf(meminfo []byte) Finding {
	all := meminfoOf(meminfo, "SwapTotal")
	used := all - meminfoOf(meminfo, "SwapFree")
	f := Finding{"swap", OK, fmt.Sprintf("%s of %s are in use", size(used), size(all)), ""}
	if used > all/2 {
		f.Verdict, f.Do = Warn, "have more memory: what is swapped out holds all clients up"
	}
	return f
}

func overcommitOf(mode int64) Finding {
	if mode == 2 {
		return Finding{"overcommit", Warn, "vm.overcommit_memory is 2: the server may be refused memory that is free", "sysctl vm.overcommit_memory=0"}
	}
	return Finding{"overcommit", OK, fmt.Sprintf("vm.overcommit_memory is %d", mode), ""}
}

func clockOf(alone bool, mayBeOff time.Duration) Finding {
	if alone {
		return Finding{"clock", Warn, "nothing synchronizes the clock: leases, delays and expiries follow it", "run chrony or systemd-timesyncd"}
	}
	return Finding{"clock", OK, fmt.Sprintf("synchronized, off by at most %v", mayBeOff.Round(time.Millisecond)), ""}
}

// fewWaiting is fewer connections than clients may make at once when a server comes back.
const fewWaiting = 1024

func backlogOf(most int64) Finding {
	f := Finding{"backlog", OK, fmt.Sprintf("%d connections may wait to be accepted", most), ""}
	if most < fewWaiting {
		f.Verdict, f.Do = Warn, "sysctl net.core.somaxconn=4096"
	}
	return f
}
