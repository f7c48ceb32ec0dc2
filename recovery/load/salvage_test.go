package load

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
)

// harmTable changes the bytes of the folder's table around a payload.
func harmTable(t *testing.T, dir, payload string, harm func(b []byte, at int)) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tables {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, []byte(payload)); i >= 0 {
			harm(b, i)
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no table holds %q", payload)
}

func TestSalvageOfADamagedFolderCanBeLoaded(t *testing.T) {
	const packets = 2100
	whole := recoverytest.InFolder(t, recoverytest.Many(packets))
	for name, harm := range map[string]func(b []byte, at int){
		"zeroed block":  func(b []byte, at int) { clear(b[at : at+3000]) },
		"several bytes": func(b []byte, at int) { b[at] ^= 1; b[at+200] ^= 1; b[at+500] ^= 1 },
		"cut table":     func(b []byte, at int) { clear(b[at:]) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := recoverytest.CopyOf(t, whole)
			harmTable(t, dir, "payload 1000", harm)

			// Without salvage nobody gets a dump that looks whole.
			if view, err := storage.OpenView(dir, storage.ViewOptions{}); err == nil {
				if _, err = dump.Dump(view, io.Discard, dump.Options{Now: recoverytest.Later}); err == nil {
					t.Error("the damage is dumped in silence")
				}
				_ = view.Close()
			} else if !errors.Is(err, storage.ErrDamaged) {
				t.Error(err)
			}

			view, err := storage.OpenView(dir, storage.ViewOptions{Tolerant: true})
			if err != nil {
				t.Fatal(err)
			}
			defer view.Close()
			text, report := dumpOf(t, view, dump.Options{Salvage: true})
			if len(view.Findings()) == 0 || report.Packets >= packets {
				t.Errorf("%d packets without a loss, findings %v", report.Packets, view.Findings())
			}
			if name != "cut table" && report.Packets < packets*3/4 {
				t.Errorf("only %d packets of %d are brought out", report.Packets, packets)
			}
			to := t.TempDir()
			if loaded := load(t, to, text, Options{}); loaded.Packets != report.Packets {
				t.Errorf("%d of %d packets can be loaded", loaded.Packets, report.Packets)
			}
			if report := verified(t, to); !report.Sound() {
				t.Errorf("what was loaded: %v", report.Findings)
			}
		})
	}
}
