package doctor

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestFindingsOfTheSystemAreAsBadAsWhatIsSeen(t *testing.T) {
	const (
		gib     = 1 << 30
		plenty  = "MemTotal: 8388608 kB\nMemAvailable:    4194304 kB\n"
		pressed = "MemTotal: 8388608 kB\nMemAvailable:     131072 kB\n"
	)
	for name, row := range map[string]struct {
		finding Finding
		verdict Verdict
		want    string
	}{
		"memory":              {memoryFor([]byte(plenty), 8*gib), OK, "8.0 GiB, of which 4.0 GiB"},
		"memory in use":       {memoryFor([]byte(pressed), 8*gib), Warn, "have 256 MiB available"},
		"memory of a riddle":  {memoryFor(nil, 8*gib), Warn, "8.0 GiB, of which 0 B"},
		"a small container":   {memoryFor([]byte(plenty), gib/8), Warn, "128 MiB, of which 128 MiB"},
		"a clock":             {clockOf(false, 1234567*time.Nanosecond), OK, "at most 1ms"},
		"a clock by itself":   {clockOf(true, 0), Warn, "chrony"},
		"a disk":              {fileSystemOf(unix.EXT4_SUPER_MAGIC), OK, "ext4"},
		"a rare disk":         {fileSystemOf(0x1234), OK, "of type 0x1234"},
		"a network":           {fileSystemOf(unix.NFS_SUPER_MAGIC), Warn, "nfs is reached over a network"},
		"a network of others": {fileSystemOf(unix.SMB2_SUPER_MAGIC), Warn, "smb is reached over a network"},
		"memory as a disk":    {fileSystemOf(unix.TMPFS_MAGIC), Warn, "tmpfs is in memory"},
		"a container's":       {fileSystemOf(unix.OVERLAYFS_SUPER_MAGIC), Warn, "volume"},
	} {
		check(t, name, row.finding, row.verdict, row.want)
	}
}

func TestTheSystemIsExamined(t *testing.T) {
	findings := Examine(t.TempDir(), 1)
	for _, name := range []string{"files", "folder", "filesystem", "sync", "space", "memory"} {
		find(t, findings, name)
	}
}
