package loadgen

import (
	"bytes"
	"fmt"
	"os"
	"time"
)

// Usage is what a process has used: processor time since it began, and the memory it holds now.
type Usage struct {
	// CPU is user and system time of all threads, and of the children that have ended and were waited
	// for, in steps of 10 ms.
	CPU time.Duration
	// Children says that it has children that run, whose time does not count yet. A kernel without
	// CONFIG_PROC_CHILDREN does not tell.
	Children bool
	// Bytes of resident memory. RSS is all of it, Anon what is not of files.
	RSS, Anon int64
}

// clockTick is the unit of the times in /proc/PID/stat: USER_HZ is 100 wherever Go runs on Linux.
const clockTick = 10 * time.Millisecond

// ReadUsage reads the usage of a process from /proc.
func ReadUsage(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("the processor time of process %d cannot be read: %w", pid, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("the memory of process %d cannot be read: %w", pid, err)
	}
	var u Usage
	if u.CPU, err = parseStat(stat); err != nil {
		return Usage{}, err
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // that the first thread began
	if err != nil && !os.IsNotExist(err) {
		return Usage{}, fmt.Errorf("the children of process %d cannot be read: %w", pid, err)
	}
	u.Children = len(children) > 0
	return u, u.parseStatus(status)
}

// parseStat returns the sum of utime, stime, cutime and cstime, the fields 14 to 17 of
// /proc/PID/stat. Field 2 is the command in parentheses and may itself hold spaces and parentheses.
// So fields are counted from the last parenthesis.
func parseStat(stat []byte) (all time.Duration, err error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const first, last = 14 - 3, 17 - 3
	if len(fields) <= last {
		return 0, fmt.Errorf("/proc/PID/stat is %q, expected 17 fields or more", stat)
	}
	for _, field := range fields[first : last+1] {
		ticks, ok := number(field)
		if !ok {
			return 0, fmt.Errorf("/proc/PID/stat is %q, expected the processor times in the fields 14 to 17", stat)
		}
		all += time.Duration(ticks) * clockTick
	}
	return all, nil
}

// parseStatus reads the memory lines of /proc/PID/status, such as "VmRSS:     1234 kB". A process
// that has ended has none of them.
func (u *Usage) parseStatus(status []byte) error {
	memory := map[string]*int64{"VmRSS": &u.RSS, "RssAnon": &u.Anon}
	for row := range bytes.Lines(status) {
		name, rest, _ := bytes.Cut(row, []byte{':'})
		to := memory[string(name)]
		if to == nil {
			continue
		}
		kib, ok := number(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB")))
		if !ok {
			return fmt.Errorf("/proc/PID/status says %q, expected a number of kB", bytes.TrimSpace(row))
		}
		*to = kib << 10
	}
	return nil
}
