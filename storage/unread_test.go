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
	values, err := filepath.Glob(filepath.Join(f.dir, dbName, "*"+valueLogSuffix))
	if err != nil || len(values) == 0 {
		t.Fatalf("%d files of the value log, %v", len(values), err)
	}
	value := filepath.Join(dbName, filepath.Base(values[0]))
	for file, kind := range map[string]string{
		formatName: FindingFormat,
		anchorName: FindingAnchor,
		secretName: FindingSecret,
		value:      FindingOther,
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
