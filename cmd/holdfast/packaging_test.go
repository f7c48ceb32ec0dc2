package main

import (
	"cmp"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// instructions are the lines of the Dockerfile that begin with a word, without it.
func instructions(t *testing.T, word string) []string {
	t.Helper()
	var found []string
	for _, line := range regexp.MustCompile(`(?m)^`+word+` (.*)$`).FindAllStringSubmatch(string(readFile(t, "packaging/Dockerfile")), -1) {
		found = append(found, line[1])
	}
	if found == nil {
		t.Fatalf("the Dockerfile has no %s", word)
	}
	return found
}

// unsplit reads the form of a command that no shell splits.
func unsplit(t *testing.T, list string) (all []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	return all
}

func TestTheImageIsBuiltByTheToolchainOfTheModule(t *testing.T) {
	number := regexp.MustCompile(`(?m)^go (.*)$`).FindSubmatch(readFile(t, "../../go.mod"))[1]
	want := []string{"scratch AS base", "base AS ready", "--platform=$BUILDPLATFORM golang:" + string(number) + " AS build", "base"}
	if from := instructions(t, "FROM"); !slices.Equal(from, want) {
		t.Errorf("it is built from %q, want %q", from, want)
	}
}

// skipWithoutPowers skips a test that failed because root has no powers, as in a container where
// other users do not exist.
func skipWithoutPowers(t *testing.T, err error) {
	t.Helper()
	for _, without := range []syscall.Errno{syscall.EPERM, syscall.EINVAL, syscall.EACCES} {
		if errors.Is(err, without) {
			t.Skipf("skipped: root may not do what it needs: %v", err)
		}
	}
}

// The folder has what the image has: the program and the folder of the volume.
func TestSystemTheImageServesAndIsHealthy(t *testing.T) {
	if file, err := elf.Open(executable); err != nil || file.Section(".interp") != nil || os.Getuid() != 0 {
		t.Skipf("skipped: it needs root, and a test that is linked statically: %v", err)
	}
	image, volume := t.TempDir(), instructions(t, "VOLUME")[0]
	if err := os.Chmod(image, 0o755); err != nil {
		t.Fatal(err)
	}
	const user = 65532
	if got := instructions(t, "USER")[0]; got != "65532:65532" || !slices.Contains(instructions(t, "COPY"), "--from=build --chown="+got+" /volume /") {
		t.Errorf("the user is %s, want %d, and the volume %s its own", got, user, volume)
	}
	data := filepath.Join(image, volume)
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, user, user); err != nil {
		skipWithoutPowers(t, err)
		t.Fatal(err)
	}
	entry := unsplit(t, instructions(t, "ENTRYPOINT")[0])
	if err := os.WriteFile(filepath.Join(image, entry[0]), readFile(t, executable), 0o755); err != nil {
		t.Fatal(err)
	}
	inImage := func(args []string, env ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = "/", slices.Concat([]string{asProgram + "=1"}, instructions(t, "ENV"), env)
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: image, Credential: &syscall.Credential{Uid: user, Gid: user}}
		return cmd
	}
	const anywhere = "127.0.0.1:0"
	cmd := inImage(append(entry, unsplit(t, instructions(t, "CMD")[0])...), "HOLDFAST_LOG=json",
		"HOLDFAST_REDIS="+anywhere, "HOLDFAST_PINPRIQ="+anywhere, "HOLDFAST_BARBERSHOP="+anywhere, "HOLDFAST_ADMIN="+anywhere)
	log, write := io.Pipe()
	cmd.Stderr = write
	if err := cmd.Start(); err != nil {
		skipWithoutPowers(t, err)
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); write.Close() }() // ends with the process
	s := &testServer{}
	s.wait(t, log, io.Discard, []string{"--redis", anywhere, "--pinpriq", anywhere, "--barbershop", anywhere, "--admin", anywhere})
	check := regexp.MustCompile(`CMD (.*)$`).FindStringSubmatch(instructions(t, "HEALTHCHECK")[0])[1]
	if out, err := inImage(unsplit(t, check), "HOLDFAST_ADMIN="+s.addrs["admin"]).CombinedOutput(); err != nil {
		t.Errorf("the check of its health: %v, %s", err, out)
	}
	s.must(t, "push", "jobs", "hello")
	if _, err := os.Stat(filepath.Join(data, "format")); err != nil {
		t.Errorf("the volume is not the data folder: %v", err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestSystemThePackageIsNotInstalledOverAnotherFormat(t *testing.T) {
	dir := t.TempDir()
	script := strings.NewReplacer("@FORMAT@", strconv.Itoa(content.FormatVersion), "/var/lib/holdfast", dir, "/etc/holdfast", filepath.Join(dir, "etc")).
		Replace(string(readFile(t, "packaging/deb/preinst")))
	preinst := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", script, "preinst"}, args...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	allowed := func(when string) {
		for _, args := range [][]string{{"install"}, {"install", "0.4.0"}, {"upgrade", "0.4.0"}, {"abort-upgrade", "0.4.0"}} {
			if out, err := preinst(args...); out != "" || err != nil {
				t.Errorf("%s, %q: %v, %s", when, args, err, out)
			}
		}
	}
	write := func(name, text string) {
		err := os.MkdirAll(filepath.Dir(name), 0o700)
		if err = cmp.Or(err, os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	allowed("no folder")
	write(filepath.Join(dir, "format"), strconv.Itoa(content.FormatVersion)+"\n")
	allowed("this format")
	other := filepath.Join(dir, "other")
	write(filepath.Join(other, "format"), "6\n")
	write(filepath.Join(dir, "etc", "holdfast.toml"), fmt.Sprintf("# data = \"x\"\ndata = %q\n", other))
	want := "holdfast: " + other + " has data format 6, and this version serves format 7 alone. Nothing was changed."
	for _, args := range [][]string{{"install", "0.4.0"}, {"upgrade", "0.4.0"}} {
		if out, err := preinst(args...); err == nil || !strings.HasPrefix(out, want) || !strings.Contains(out, "holdfast dump "+other) {
			t.Errorf("%q: %v, %s", args, err, out)
		}
	}
	if out, err := preinst("abort-upgrade", "0.4.0"); out != "" || err != nil {
		t.Errorf("after a refusal: %v, %s", err, out)
	}
}

func TestTheUnitOfTheTimerMakesBackups(t *testing.T) {
	t.Parallel()
	unit := string(readFile(t, "packaging/holdfast-backup.service"))
	_, line, found := strings.Cut(unit, "\nExecStart=/usr/bin/holdfast ")
	line, _, _ = strings.Cut(line, "\n")
	const dir = "/var/lib/holdfast-backups"
	if !found || !strings.Contains(line, " "+dir+" ") || !strings.Contains(unit, "\nStateDirectory="+filepath.Base(dir)+"\n") {
		t.Fatalf("the unit runs %q", line)
	}
	s, to := serve(t, t.TempDir(), "--admin", "127.0.0.1:0"), t.TempDir()
	if made := s.must(t, strings.Fields(strings.ReplaceAll(line, dir, to))...); filepath.Dir(made) != to {
		t.Errorf("it made %q", made)
	}
	if timer := string(readFile(t, "packaging/holdfast-backup.timer")); !strings.Contains(timer, "\nOnCalendar=hourly\n") {
		t.Errorf("the timer is %q", timer)
	}
}

func TestTheUnitRunsTheConfigurationOfThePackage(t *testing.T) {
	unit := string(readFile(t, "packaging/holdfast.service"))
	if want := "\nExecStart=/usr/bin/holdfast serve --config /etc/holdfast/holdfast.toml\n"; !strings.Contains(unit, want) {
		t.Errorf("the unit has no %q", want)
	}
	if r := (command{}).run(t.Context(), "config", "check", "packaging/holdfast.toml"); r.code != exitOK {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{`data = "/var/lib/holdfast"`, "\nStateDirectory=holdfast\n"} {
		if !strings.Contains(unit+string(readFile(t, "packaging/holdfast.toml")), want) {
			t.Errorf("neither the unit nor the configuration says %q", want)
		}
	}
}
