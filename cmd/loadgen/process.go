package loadgen

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Usage is what a process has used: processor time since it began, and the
// memory it holds now.
type Usage struct {
	CPU time.Duration // user and system time of all threads, in steps of 10 ms
	// Bytes of resident memory; RSS is the sum of the three others.
	RSS, Anon, File, Shmem int64
}

// clockTick is the unit of the times in /proc/PID/stat: USER_HZ is 100 on every
// Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// ReadUsage reads the usage of a process from /proc, which only Linux has.
func ReadUsage(pid int) (Usage, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Usage{}, fmt.Errorf("the processor time of process %d cannot be read: %w", pid, err)
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return Usage{}, fmt.Errorf("the memory of process %d cannot be read: %w", pid, err)
	}
	var u Usage
	if u.CPU, err = parseStat(stat); err != nil {
		return Usage{}, err
	}
	return u, u.parseStatus(status)
}

// ReadWritten reads how many bytes a process has made dirty so far, in whole
// pages: what it has caused to be written to disks, whoever writes it. It reads
// /proc, which only Linux has.
func ReadWritten(pid int) (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/io")
	if err != nil {
		return 0, fmt.Errorf("what process %d has written cannot be read: %w", pid, err)
	}
	return parseIO(text)
}

// parseIO returns write_bytes of /proc/PID/io.
func parseIO(text []byte) (int64, error) {
	for row := range bytes.Lines(text) {
		name, rest, _ := bytes.Cut(row, []byte{':'})
		if string(name) != "write_bytes" {
			continue
		}
		if n, ok := number(bytes.TrimSpace(rest)); ok {
			return n, nil
		}
		return 0, fmt.Errorf("/proc/PID/io says %q, expected a number of bytes", bytes.TrimSpace(row))
	}
	return 0, errors.New("/proc/PID/io has no line write_bytes, expected one")
}

// parseStat returns the sum of utime and stime, fields 14 and 15 of
// /proc/PID/stat. The second field is the command in parentheses and may itself
// hold spaces and parentheses, so fields are counted from the last one.
func parseStat(stat []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, errors.New("/proc/PID/stat has no command in parentheses, expected one as its second field")
	}
	fields := bytes.Fields(stat[end+1:])
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return 0, fmt.Errorf("/proc/PID/stat has %d fields, expected 15 or more", len(fields)+2)
	}
	u, okUser := number(fields[user])
	s, okSystem := number(fields[system])
	if !okUser || !okSystem {
		return 0, errors.New("/proc/PID/stat has no number in field 14 or 15, expected the processor times")
	}
	return time.Duration(u+s) * clockTick, nil
}

// parseStatus reads the memory lines of /proc/PID/status, such as
// "VmRSS:     1234 kB". A process that has ended has none of them.
func (u *Usage) parseStatus(status []byte) error {
	for row := range bytes.Lines(status) {
		name, rest, _ := bytes.Cut(row, []byte{':'})
		var to *int64
		switch string(name) {
		case "VmRSS":
			to = &u.RSS
		case "RssAnon":
			to = &u.Anon
		case "RssFile":
			to = &u.File
		case "RssShmem":
			to = &u.Shmem
		default:
			continue
		}
		fields := bytes.Fields(rest)
		if len(fields) != 2 || string(fields[1]) != "kB" {
			return fmt.Errorf("/proc/PID/status says %q, expected a number of kB", bytes.TrimSpace(row))
		}
		kib, ok := number(fields[0])
		if !ok {
			return fmt.Errorf("/proc/PID/status says %q, expected a number of kB", bytes.TrimSpace(row))
		}
		*to = kib << 10
	}
	return nil
}
