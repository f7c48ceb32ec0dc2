package cell

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatEtcdCannotGoOnWithEndsTheMemberAndNotTheProcess(t *testing.T) {
	t.Parallel()
	a, b, _ := trio(t)
	founded(t, a)
	if err := os.MkdirAll(filepath.Join(b.Dir, "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(a.Dir, "member", "wal"), filepath.Join(b.Dir, "member", "wal")); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), b); !errors.Is(err, ErrFailed) {
		t.Errorf("a log that another etcd writes: %v, want ErrFailed", err)
	}
}

func TestAnOldImageOfAFolderSaysSo(t *testing.T) {
	t.Parallel()
	a, b, _ := trio(t)
	ma := founded(t, a)
	joins(t, ma, b).Close()
	image := filepath.Join(t.TempDir(), "image")
	if err := os.CopyFS(image, os.DirFS(b.Dir)); err != nil {
		t.Fatal(err)
	}
	mb := run(t)(Start(t.Context(), b))
	for range 10 {
		putKey(t, mb, "k")
	}
	mb.Close()
	b.Dir = image
	if m, err := Start(t.Context(), b); err == nil {
		<-m.Done() // with the first heartbeat of the leader
		if err = m.Err(); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "older") {
			t.Error(err)
		}
	} else if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "older") {
		t.Error(err)
	}
}
