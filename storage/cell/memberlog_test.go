package cell

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWhatEtcdSaysAgainAndAgainIsToldOnce(t *testing.T) {
	var w warned
	now := time.Now()
	says := func(line string, again bool) {
		t.Helper()
		if got := w.again([]byte(line), now); got != again {
			t.Errorf("%s: again: %v", line, got)
		}
	}
	says(`failed to get version {"remote": "b", "error": "1"}`, false)
	says(`rejected connection {"remote-addr": "10.0.0.7:49746", "error": "tls: no certificate"}`, false)
	says(`rejected connection {"remote-addr": "10.0.0.7:49748", "error": "tls: unknown authority"}`, false)
	says(`rejected connection {"remote-addr": "10.0.0.8:49750", "error": "tls: unknown authority"}`, true)
	now = now.Add(warnPause / 2)
	says(`failed to get version {"remote": "b", "error": "2"}`, true)
	now = now.Add(warnPause / 2)
	says(`failed to get version {"remote": "b", "error": "3"}`, false)
	for i := range 10 * maxKinds {
		says(strings.Repeat("x", i+1), false)
	}
	if len(w.told) > maxKinds {
		t.Errorf("%d kinds are kept", len(w.told))
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
