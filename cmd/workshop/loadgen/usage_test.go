package loadgen

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func TestProcessorTimeIsThatOfTheProcessAndOfItsChildren(t *testing.T) {
	for name, row := range map[string]struct {
		stat string
		want time.Duration // -1: an error
	}{
		"plain":                 {"7 (redis-server) S 1 7 7 0 -1 4194560 99 0 0 0 150 25 30 4 20 0 5 0", 2090 * time.Millisecond},
		"name with parenthesis": {"7 (a) R 1 (b) S 1 7 7 0 -1 4194560 99 0 0 0 3 4 0 0 20 0", 70 * time.Millisecond},
		"cut":                   {"7 (x) S 1 7 7 0 -1 4194560 99 0 0 0 150", -1},
		"no name":               {"7 x S 1", -1},
		"no number":             {"7 (x) S 1 7 7 0 -1 4194560 99 0 0 0 1 25 a 0", -1},
	} {
		got, err := parseStat([]byte(row.stat))
		if row.want < 0 != (err != nil) || err == nil && got != row.want {
			t.Errorf("%s: got %v, %v, expected %v", name, got, err, row.want)
		}
	}
}

func TestMemoryIsReadFromTheStatus(t *testing.T) {
	var u Usage
	err := u.parseStatus([]byte("Name:\tx\nVmPeak:\t 9 kB\nVmRSS:\t    1234 kB\nRssAnon:\t     1000 kB\nRssFile:\t 230 kB\nRssShmem:\t       4 kB\n"))
	want := Usage{RSS: 1234 << 10, Anon: 1000 << 10}
	if err != nil || u != want {
		t.Errorf("got %+v, %v, expected %+v", u, err, want)
	}
	for _, bad := range []string{"VmRSS: 12 MB\n", "VmRSS: x kB\n", "VmRSS:\n"} {
		if err := u.parseStatus([]byte(bad)); err == nil {
			t.Errorf("%q gave no error", bad)
		}
	}
}

func TestAProcessThatDoesNotExistIsAnError(t *testing.T) {
	if _, err := ReadUsage(1 << 30); err == nil {
		t.Error("no error")
	}
}

func TestSystemAProcessIsNotAtRestWhileItHasAChild(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 60 & echo $!; wait")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(child, syscall.SIGKILL) }()
	if u, err := ReadUsage(cmd.Process.Pid); err != nil || !u.Children {
		t.Errorf("%+v, %v: no child", u, err)
	}
	if u, err := ReadUsage(child); err != nil || u.Children {
		t.Errorf("%+v, %v: a child of the child", u, err)
	}
}
