package cell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWhatEtcdSaysAgainAndAgainIsTold(t *testing.T) {
	var w warned
	now := time.Now()
	says := func(line string, is bool, again int) {
		t.Helper()
		if gotIs, gotAgain := w.tell([]byte(line), now); gotIs != is || gotAgain != again {
			t.Errorf("%s: told %v, and %d were not; want %v, %d", line, gotIs, gotAgain, is, again)
		}
	}
	says(`failed to get version {"remote": "b", "error": "1"}`, true, 0)
	says("peer became inactive", true, 0)
	for range 3 {
		now = now.Add(warnPause / 4)
		says(`failed to get version {"remote": "b", "error": "2"}`, false, 0)
	}
	now = now.Add(warnPause / 4)
	says(`failed to get version {"remote": "c"}`, true, 3)
	for i := range 10 * maxKinds {
		says(fmt.Sprint("term ", i), true, 0)
	}
	if len(w.kinds) > maxKinds {
		t.Errorf("%d kinds are kept", len(w.kinds))
	}
}

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
