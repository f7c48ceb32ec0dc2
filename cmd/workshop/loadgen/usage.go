package loadgen

import (
	"bytes"
	"fmt"
	"os"
	"time"
)

// Usage is what a process has used: processor time since it began, and the memory it holds now.
type Usage struct {
	CPU time.Duration // user and system time of all threads, in steps of 10 ms
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
	return u, u.parseStatus(status)
}

// parseStat returns the sum of utime and stime, the fields 14 and 15 of /proc/PID/stat. Field 2 is
// the command in parentheses and may itself hold spaces and parentheses. So fields are counted from
// the last parenthesis.
func parseStat(stat []byte) (time.Duration, error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return 0, fmt.Errorf("/proc/PID/stat is %q, expected 15 fields or more", stat)
	}
	u, okUser := number(fields[user])
	s, okSystem := number(fields[system])
	if !okUser || !okSystem {
		return 0, fmt.Errorf("/proc/PID/stat is %q, expected the processor times in the fields 14 and 15", stat)
	}
	return time.Duration(u+s) * clockTick, nil
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
