package storage

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSmallFileThatCannotBeReadIsAFindingOfASalvage(t *testing.T) {
	f := newDamageFolder(t, true)
	for file, kind := range map[string]string{
		formatName: FindingFormat,
		anchorName: FindingAnchor,
		secretName: FindingSecret,
	} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			dir := t.TempDir()
			copyFolder(t, f.dir, dir)
			name := filepath.Join(dir, file)
			if err := errors.Join(os.Remove(name), os.Mkdir(name, 0o700)); err != nil {
				t.Fatal(err)
			}
			for _, how := range []string{"open", "look"} {
				if _, err := openings[how](dir); err == nil || !strings.Contains(err.Error(), filepath.Base(file)) {
					t.Errorf("to %s it gives %v", how, err)
				}
			}
			v := openView(t, dir, ViewOptions{Tolerant: true})
			found := v.Findings()
			if len(found) == 0 || slices.ContainsFunc(found, func(f Finding) bool { return f.Kind != kind }) {
				t.Errorf("findings %v, want some of kind %s", found, kind)
			}
			if ids := viewed(t, v); len(ids) != len(f.want) {
				t.Errorf("%d packets are shown, %d are there", len(ids), len(f.want))
			}
		})
	}
}
