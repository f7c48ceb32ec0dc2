package storage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

// firstStart names the folder in which a child applies a first batch.
const firstStart = "HOLDFAST_FIRST_START"

func TestFirstStartChild(t *testing.T) {
	dir := os.Getenv(firstStart)
	if dir == "" {
		t.Skip("runs as a child of another test")
	}
	s := openTest(t, dir, Options{})
	var b content.Batch
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 1}, &content.Packet{Payload: []byte("x")})
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	fmt.Println("applied")
}

// A file whose name a power cut takes is lost, however often the file itself was synced.
func TestSystemTheNamesOfAllFoldersAreDurableBeforeTheFirstBatchIs(t *testing.T) {
	root, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	data := filepath.Join(root, "a", "b", "data")
	args := append(inject.Strace(t, "-y", "-s", "300", "-o", log, "-e", "trace=mkdirat,fsync,write"), os.Args[0], "-test.run=^TestFirstStartChild$")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), firstStart+"="+data)
	out, err := cmd.CombinedOutput()
	calls, readErr := os.ReadFile(log)
	if err := errors.Join(err, readErr); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before, _, applied := strings.Cut(string(calls), `"applied`)
	if !applied {
		t.Fatalf("no batch was applied: %s", out)
	}
	call := regexp.MustCompile(`mkdirat\(.*?"(.*?)"|fsync\(\d+<(.*?)>`)
	unsynced := map[string]bool{}
	for _, m := range call.FindAllStringSubmatch(before, -1) {
		if m[1] != "" {
			unsynced[m[1]] = true
			continue
		}
		for name := range unsynced {
			if filepath.Dir(name) == m[2] {
				delete(unsynced, name)
			}
		}
	}
	for name := range unsynced {
		if !strings.HasPrefix(name, filepath.Join(data, buildName)) { // which is for what is not finished
			t.Errorf("the name of %s was not synced", name)
		}
	}
}

// A folder in which a user may make others is often one that this user may not read.
func TestAFolderIsMadeInOneThatCannotBeRead(t *testing.T) {
	f, err := smallStore(t, t.TempDir()).Files()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	above := t.TempDir()
	if err := os.Chmod(above, 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(above, 0o700) })
	if os.Geteuid() == 0 { // who may read all
		const nobody = 65534
		err := errors.Join(os.Chmod(filepath.Dir(above), 0o755), os.Chown(above, nobody, nobody))
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err = errors.Join(err, unix.Setfsuid(nobody)); err != nil {
			t.Fatal(err)
		}
		defer unix.Setfsuid(0)
	}
	if _, err := os.ReadDir(above); err == nil {
		t.Skip("skipped: this user may read all")
	}
	if data, err := openFolder(filepath.Join(above, "a", "data")); err != nil {
		t.Error(err)
	} else {
		data.close()
	}
	if err := restored(filepath.Join(above, "restored"), f); err != nil {
		t.Error(err)
	}
}
